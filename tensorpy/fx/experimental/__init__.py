"""torch.fx.experimental's place: proxy_tensor records calls."""
