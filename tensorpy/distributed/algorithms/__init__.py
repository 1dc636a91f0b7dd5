"""What is done over many messages: join.py for unlike numbers of batches, ddp_comm_hooks for smaller gradients."""
