/* test_lock.c: turns, parked memory, and both over a fork. */
#include "check.h"

#include "core/host.h"
#include "core/lock.h"
#include "core/turn.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static tp_turn turn;
static _Atomic int inside, most, rounds;

static void *take_turns(void *unused) {
    for (int i = 0; i < 2000; i++) {
        CHECK_INT(tp_turn_take(&turn), 0);
        int now = ++inside;
        if (now > most) most = now;
        CHECK_INT(tp_turn_take(&turn), 0); /* the owner's again */
        tp_turn_pass(&turn);
        rounds++;
        inside--;
        tp_turn_pass(&turn);
    }
    return unused;
}

static void test_turns(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, take_turns, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK_INT(rounds, 8000);
    CHECK_INT(most, 1);
}

static _Atomic bool taken, enough;
static void *hold_turn(void *unused) {
    tp_turn_take(&turn);
    tp_lock(TP_LOCK_ClPlans); /* one that a fork does not wait for */
    taken = true;
    while (!enough) usleep(1000);
    tp_unlock(TP_LOCK_ClPlans);
    tp_turn_pass(&turn);
    return unused;
}

/* The owner does not exist in the child. */
static void test_fork(void) {
    pthread_t holder;
    pthread_create(&holder, NULL, hold_turn, NULL);
    while (!taken) usleep(1000);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        CHECK_INT(tp_turn_take(&turn), 0);
        tp_turn_pass(&turn);
        for (int id = 0; id < TP_NUM_LOCKS; id++) {
            tp_lock((tp_lock_id)id);
            tp_unlock((tp_lock_id)id);
        }
        _exit(check_failed ? 1 : 0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
    enough = true;
    pthread_join(holder, NULL);
}

/* ---- parking, with a host whose lock is a mutex ---- */

static pthread_mutex_t gil = PTHREAD_MUTEX_INITIALIZER;
static void *release(void) {
    pthread_mutex_unlock(&gil);
    return &gil;
}
static void acquire(void *unused) {
    (void)unused;
    pthread_mutex_lock(&gil);
}

static int ended;
static void end(void *what, size_t size) { ended += what == &ended && size == 7; }
static void park(void) { tp_host_park(end, &ended, 7); }

static _Atomic int reading;
static void *read_for_long(void *until) {
    pthread_mutex_lock(&gil);
    void *state = tp_host_lock_release();
    reading++;
    while (!*(_Atomic bool *)until) usleep(100);
    tp_host_lock_acquire(state);
    pthread_mutex_unlock(&gil);
    return NULL;
}

static void test_parking(void) {
    static _Atomic bool first_done, second_done;
    pthread_t first, second;
    tp_set_host_lock((tp_host_lock){.release = release, .acquire = acquire});
    pthread_mutex_lock(&gil);
    park();
    CHECK_INT(ended, 1); /* nobody is away */
    void *state = tp_host_lock_release();
    pthread_create(&first, NULL, read_for_long, (void *)&first_done);
    while (reading < 1) usleep(100);
    tp_host_lock_acquire(state);
    park();
    CHECK_INT(ended, 1);
    state = tp_host_lock_release();
    pthread_create(&second, NULL, read_for_long, (void *)&second_done);
    while (reading < 2) usleep(100);
    first_done = true;
    pthread_join(first, NULL);
    tp_host_lock_acquire(state);
    CHECK_INT(ended, 2); /* who came later has not seen it */
    park();
    CHECK_INT(ended, 2);
    state = tp_host_lock_release();
    second_done = true;
    pthread_join(second, NULL);
    tp_host_lock_acquire(state);
    CHECK_INT(ended, 3);
    pthread_mutex_unlock(&gil);
    tp_set_host_lock((tp_host_lock){.release = NULL});
}

int main(void) {
    test_turns();
    test_fork();
    test_parking();
    return check_report();
}
