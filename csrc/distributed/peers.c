/* peers.c: see peers.h. */
#include "distributed/peers.h"

#include "distributed/lines.h"
#include "distributed/pmi.h"
#include "distributed/state.h"

#include <stdio.h>

#define WHERE_PATIENCE 1000 /* ms for the others to say where they are */
#define LEFT_GRACE 1000     /* ms in which what a process sent before it left has to come */

static void split_who(const char *who, char *out, size_t room) {
    char host[256] = "?";
    int pid = 0;
    sscanf(who, "%255s %d", host, &pid);
    snprintf(out, room, "host %s, pid %d", host, pid);
}

int tp_peers_missing(const int *ranks, int n) {
    int64_t now = tp_now_ms();
    for (int i = 0; i < n; i++) {
        int rank = ranks ? ranks[i] : i;
        const tp_peer *p = &tp_world.peers[rank];
        if (rank != tp_world.rank && p->gone && now - p->when > LEFT_GRACE) return rank;
    }
    return -1;
}

void tp_peers_look_for(const int *ranks, int n) {
    tp_world_lock();
    int rank = tp_peers_missing(ranks, n);
    if (rank >= 0) tp_peers_ended(rank);
    tp_world_unlock();
}

void tp_peers_ended(int rank) {
    char text[500];
    snprintf(text, sizeof text, "rank %d (%s) ended", rank, tp_world.peers[rank].who);
    tp_world_set_fault(text);
}

/* All have done what they had to: whoever goes first is not missing. */
static bool ends_together(void) { return atomic_load(&tp_world.leave) == 1; }

static void on_gone(int rank, const char *who, bool left) {
    if (rank < 0 || rank >= tp_world.size || ends_together()) return;
    char text[500], about[300];
    split_who(who, about, sizeof about);
    snprintf(text, sizeof text, "rank %d (%s) ended", rank, about);
    tp_world_lock();
    tp_peer *p = &tp_world.peers[rank];
    if (!p->gone) {
        p->gone = true;
        p->left = left;
        p->when = tp_now_ms();
        snprintf(p->who, sizeof p->who, "%s", about);
    }
    if (!left) tp_world_set_fault(text);
    tp_world_unlock();
    if (!left) tp_pmi_fail(true);
}

/* Rank 0 may leave as others do, and takes the server with it: then nobody watches any more. */
static void on_lost(const char *why) {
    char text[200];
    if (ends_together()) {
        tp_pmi_fail(true);
        return;
    }
    snprintf(text, sizeof text, "rank 0, whose server watches the others, %s", why);
    tp_world_lock();
    tp_world.lost = true;
    if (!tp_world.peers[0].left) tp_world_set_fault(text);
    tp_world_unlock();
    tp_pmi_fail(true);
}

static void on_where(int number, char *out, size_t room) {
    tp_world_lock();
    if (number >= 0 && number < tp_world.group_count && tp_world.groups[number].used)
        snprintf(out, room, "%lld %s", (long long)tp_world.groups[number].begun - 1,
                 tp_world.groups[number].last ? tp_world.groups[number].last : "none");
    else snprintf(out, room, "-1 none");
    tp_world_unlock();
}

static void on_at(int rank, int number TP_UNUSED, const char *said) {
    long long begun;
    char name[64];
    if (rank < 0 || rank >= tp_world.size || sscanf(said, "%lld %63s", &begun, name) != 2) return;
    tp_world_lock();
    tp_world.peers[rank].asked_number = begun;
    snprintf(tp_world.peers[rank].asked_name, sizeof tp_world.peers[rank].asked_name, "%s", name);
    tp_world_unlock();
}

static void on_leave(bool all) { atomic_store(&tp_world.leave, all ? 1 : 2); }

const tp_watch_events tp_peer_events = {on_gone, on_lost, on_where, on_at, tp_pmi_reply, on_leave};

/* ---- questions ---- */

/* Whether a process is in a group of this number; all are in -1. */
static bool is_meant(int number, int rank) {
    if (number < 0) return true;
    const tp_group *g = &tp_world.groups[number];
    for (int i = 0; i < g->n; i++)
        if (g->ranks[i] == rank) return true;
    return false;
}

void tp_peers_ask(int number) {
    bool all = false;
    tp_world_lock();
    for (int r = 0; r < tp_world.size; r++) tp_world.peers[r].asked_number = -2;
    tp_world_unlock();
    tp_watch_ask(number);
    for (int64_t end = tp_now_ms() + WHERE_PATIENCE; !all && tp_now_ms() < end; tp_sleep_us(1000)) {
        tp_world_lock();
        all = true;
        for (int r = 0; r < tp_world.size; r++) {
            const tp_peer *p = &tp_world.peers[r];
            all =
                all && (r == tp_world.rank || p->asked_number > -2 || p->left || tp_world.lost || !is_meant(number, r));
        }
        tp_world_unlock();
    }
}
