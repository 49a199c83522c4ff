/* amt.h: a hearing model in C. This header is the manual.

   A model takes sound in channels of float and gives frames of numbers, its columns, at a fixed
   rate. Link amt.c, amt_numba.c and the object of the model into your program, with libm:

       cc -O2 -DAMT_PLAN='"zwicker_plan.h"' yours.c amt.c amt_numba.c zwicker-x86-64-v3.o -lm

   Threads: amt_about and amt_columns may be called from any thread at any time. All others take one
   instance, and only one thread at a time may use an instance; two instances share nothing.
   Real time: amt_process, amt_reset, amt_set_gain and amt_invalid allocate nothing, wait for nothing
   and call no system. amt_create and amt_destroy are not for a real-time thread.

   Several models in one program: compile amt.c once for each, with -DAMT_NAME=zwicker, and include
   this header with the same AMT_NAME defined; its functions are then zwicker_process and so on. */
#ifndef AMT_TYPES
#define AMT_TYPES
#include <stddef.h>
#include <stdint.h>

typedef struct amt amt; /* an instance: one sound, measured from its first sample on */

typedef struct {
    uint32_t size;             /* of this struct: it grows at its end only */
    const char *model;         /* "zwicker" */
    const char *version;       /* of the amt_stream that made it */
    const char *input_unit;    /* "pascal" or "full scale", of the samples after the gain */
    int32_t fs;                /* samples per second of a channel */
    int32_t channels;          /* of the sound */
    int32_t block;             /* samples that are calculated together */
    int32_t columns;           /* numbers of a frame */
    int32_t frames_per_block;  /* frames that each block gives */
    double frame_s;            /* between frames, in seconds */
    double latency_s;          /* frame n stands for the time n * frame_s - latency_s */
    double settle_s;           /* until the start from silence no longer matters */
    double tail_s;             /* after the end of a sound, until no column rises any more */
    uint64_t bytes;            /* memory of an instance */
    uint64_t state_bytes;      /* what amt_save writes */
} amt_info;

typedef struct {
    const char *name; /* "stl_ear_left" */
    const char *unit; /* "sone" */
} amt_column;

enum {
    AMT_E_MEMORY = -1,   /* a kernel needs more memory than the instance has: export it anew */
    AMT_E_OTHER = -2,    /* a state of another model, rate, block length or version */
    AMT_E_DAMAGED = -3,  /* a state that is not as it was saved */
    AMT_E_ARGUMENT = -4, /* a number below 0 */
    AMT_E_KERNEL = -5    /* a calculation failed: reset the instance */
};
#endif

#ifndef AMT_NAME
#define AMT_NAME amt
#endif
#define AMT_JOINED(model, name) model##_##name
#define AMT_JOIN(model, name) AMT_JOINED(model, name)
#define AMT(name) AMT_JOIN(AMT_NAME, name)

#ifdef __cplusplus
extern "C" {
#endif

/* What the model is. Never NULL. */
const amt_info *AMT(about)(void);

/* The names and units of a frame's numbers, in their order. */
const amt_column *AMT(columns)(void);

/* Makes an instance, as it is before the first sample, with gain 1. `memory`: `bytes` bytes aligned
   to 64, which stay yours; NULL: allocate. Returns NULL if there is no memory. */
amt *AMT(create)(void *memory);

/* Frees what amt_create allocated; of memory that is yours, nothing. */
void AMT(destroy)(amt *);

/* Forgets the sound; the gain stays. */
void AMT(reset)(amt *);

/* Calibration: what a sample of 1.0 is in `input_unit`, such as pascal per full scale. 1 at first. */
void AMT(set_gain)(amt *, float gain);

/* Takes up to `n` samples of each channel, and writes up to `room` frames of `columns` numbers, one
   frame after the other. `used`: how many samples it took; fewer than n where a block would give
   more frames than there is room for. Any n and room of 0 or more will do; frames are the same
   however a sound is cut. Returns the number of frames, or an error below 0.

   A sample that is NaN or infinite counts as 0, see amt_invalid. */
int32_t AMT(process)(amt *, const float *const *channels, int32_t n, float *frames, int32_t room,
                     int32_t *used);

/* How many samples since the start or reset were NaN or infinite. Their frames are not a reading. */
uint64_t AMT(invalid)(const amt *);

/* Writes the state, `state_bytes` bytes: the same on all processors, and in the middle of a block. */
void AMT(save)(const amt *, void *to);

/* amt_load goes on from a saved state; the gain stays. Returns 0, or an error with nothing changed. */
int32_t AMT(load)(amt *, const void *from, uint64_t bytes);

#ifdef __cplusplus
}
#endif
