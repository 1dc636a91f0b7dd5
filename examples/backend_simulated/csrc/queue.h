/* queue.h: what is put into a stream's queue. */
#ifndef SIMULATED_QUEUE_H
#define SIMULATED_QUEUE_H

#include "device.h"

/* Made with calloc; the stream's thread runs and frees it. */
typedef struct job {
    struct job *next;
    void (*run)(struct job *j);
} job;

/* Into this thread's stream of a device, which takes it over, also when it fails. */
int enqueue_job(int device, job *j);

#endif
