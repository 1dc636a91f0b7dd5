/* recorder.c: see recorder.h. */
#include "distributed/recorder.h"

#include "distributed/state.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST 1000000
#define TOLD 3

static tp_record *ring;
static int64_t room = -1, begun; /* room -1: not asked yet */

static void make_ring(void) {
    const char *said = getenv("TORCH_FR_BUFFER_SIZE");
    if (!said) said = getenv("TORCH_NCCL_TRACE_BUFFER_SIZE");
    room = said ? atoll(said) : 2000;
    if (room > MOST) room = MOST;
    ring = room > 0 ? calloc((size_t)room, sizeof *ring) : NULL;
    if (!ring) room = 0;
}

static int64_t count(void) { return room <= 0 ? 0 : begun < room ? begun : room; }

int64_t tp_records(tp_record **copy) {
    tp_world_lock();
    int64_t n = count();
    *copy = n ? malloc((size_t)n * sizeof **copy) : NULL;
    for (int64_t i = 0; *copy && i < n; i++) (*copy)[i] = ring[(begun - n + i) % room];
    tp_world_unlock();
    return n && !*copy ? -1 : n;
}

void tp_recorder_begin(tp_work *w, const tp_message *m) {
    if (room < 0) make_ring();
    w->record = begun++;
    if (!room) return;
    tp_group *g = &tp_world.groups[w->group];
    ring[w->record % room] = (tp_record){.name = w->name,
                                         .id = w->record,
                                         .number = w->number < 0 ? g->begun_of_two++ : w->number,
                                         .count = m->count,
                                         .came = m->count,
                                         .begun_at = w->begun_at,
                                         .group = w->group,
                                         .peer = m->peer,
                                         .kind = m->kind,
                                         .dtype = m->dtype};
    if (m->kind != TP_MSG_all_to_all) return;
    tp_record *r = &ring[w->record % room];
    for (int i = 0; i < g->n; i++) {
        r->count += m->send_counts[i];
        r->came += m->recv_counts[i];
    }
}

void tp_recorder_end(const tp_work *w) {
    if (!room) return;
    tp_record *r = &ring[w->record % room];
    if (r->id == w->record) r->done_at = tp_now_us();
}

void tp_recorder_tell(const tp_work *w, char *out, size_t room_of_out) {
    char piece[160];
    int64_t oldest = begun - count(), told = 0;
    for (int64_t id = w->record - 1; id >= oldest && told < TOLD; id--, told++) {
        const tp_record *r = &ring[id % room];
        snprintf(piece, sizeof piece, "%s%s #%lld of group %d (%s)", told ? ", " : "; before it here: ", r->name,
                 (long long)r->number, r->group, r->done_at ? "done" : "under way");
        tp_append(out, room_of_out, piece);
    }
}
