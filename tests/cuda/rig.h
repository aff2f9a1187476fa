/* rig.h: what the tests of the cuda device share: a system with the device on whatever driver the library path offers (the emulated one), and a model on it by the
 * functions of core/dev and core/model alone: no actors. */
#ifndef WEIR_TEST_RIG_H
#define WEIR_TEST_RIG_H

#include "../../core/dev/cuda/cuda.h"
#include "../../core/model/forward.h"
#include "../core/dev/helper_dev.h"
#include "../cuemu/cuemu_ctl.h"

#define RIG_LLAMA WEIR_TEST_DATA "/families/llama/model.gguf"
/* The path of a file with a llama of one narrow layer, made for this process: for tests in which many passes run. */
const char *rig_narrow(void);

typedef struct rig {
    dev_test t;
    weir__cuda *c;
    weir__stream *st;
    weir__checkpoint *checkpoint;
    weir__forward *f;
    weir__buffer **blobs; /* [units + 1] */
    uint32_t units;
    weir__buffer *logits; /* for the host, [out_tile][vocab] */
} rig;

/* Prints an error before it fails the test. */
#define rig_must(call, error)                                                                                                              \
    do {                                                                                                                                   \
        int code_ = (call);                                                                                                                \
        if (code_)                                                                                                                         \
            fail_msg("%s: %s", weir_code_name(code_), error ? weir_error_text(error) : "");                                                \
    } while (0)

void rig_open(rig *r);  /* a system, its device, a stream */
void rig_close(rig *r); /* gives everything back; asserts that every byte came back and that nothing is in flight */

/* A checkpoint and the lists of its forward work; nothing runs. */
void rig_record(rig *r, const char *path, const weir__forward_options *o);
/* And its weights on the device, ready for passes. */
void rig_load(rig *r, const char *path, const weir__forward_options *o);
void rig_load_narrow(rig *r); /* the narrow one, for 512 positions in tiles of 64 rows */
void rig_unload(rig *r);
void rig_open_narrow(rig *r); /* open and load_narrow */

/* A unit on its way to the device: what residency does with one. */
typedef struct rig_unit {
    weir__buffer *blob;
    weir__mirror staging, slot;
    weir__list *pack;
} rig_unit;
/* Makes the buffers, reads the file and records the packing; counts: the list counts the buffers that it touches. */
void rig_unit_read(rig *r, uint32_t ordinal, bool counts, rig_unit *u);
int rig_unit_submit(rig_unit *u, weir__stream *st); /* both copies and the list */
void rig_unit_drop(rig_unit *u);

int rig_wait(rig *r, weir__stream *st); /* runs until all that was submitted has ended: its status */

/* Gathers `count` tokens for each of `sequences` from position `first` on; want as weir__step_rows. */
void rig_rows(rig *r, int sequences, int32_t first, uint32_t count, int want);
/* Submits the pass that was gathered, as the stepper does one of one tile, and the copy of its logits. */
int rig_submit(rig *r);
int rig_pass(rig *r, int32_t first, uint32_t count, int want); /* of one sequence: gathered, submitted, waited for: its status */
size_t rig_logits_size(const rig *r);                          /* bytes of the logits of the pass */
const float *rig_logits(const rig *r);

/* ---- the emulated driver ---- */

/* A function of cuemu_ctl.h. */
#define EMU(name) ((__typeof__(&name))rig_emulated(#name))
void *rig_emulated(const char *name);
int rig_reports(const char *kind); /* number of reports of a kind: "unordered", "leak", ... */
void rig_no_reports(void);
void rig_close_clean(rig *r);         /* close and no_reports */
long rig_calls(const char *function); /* of the driver or cuBLAS, so far */
int rig_setup(void **state);          /* of each test: no reports, no faults, no settings */

#endif
