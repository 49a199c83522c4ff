/* amt.h: a hearing model in C. This header is the manual.

   A model takes sound in channels of float and gives frames of numbers, its columns, at a fixed
   rate. Link amt.c, amt_numba.c and the object of the model into your program, with libm:

       cc -O2 -DAMT_PLAN='"zwicker_plan.h"' yours.c amt.c amt_numba.c zwicker-x86-64-v3.o -lm

   Threads: amt_about and amt_columns may be called from any thread at any time. All others take one
   instance, or one limit, and only one thread at a time may use it; two of them share nothing.
   Real time: amt_process, amt_reset, amt_set_gain, amt_invalid and those of limits allocate nothing,
   wait for nothing and call no system. amt_create and amt_destroy are not for a real-time thread.

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

/* An upper limit of a column, or a lower one; as `Limit` of amt_stream. */
typedef struct {
    double threshold;  /* in the unit of the column: red above it, or below it for a lower limit */
    double amber;      /* amber from here on, before the limit; NAN: no warning */
    double hysteresis; /* how far a value must return before the state improves */
    double hold_s;     /* and for how long; a worse state comes immediately */
    int32_t below;     /* whether it is a lower limit */
    int32_t at_end;    /* whether only the last value counts, as for a programme */
} amt_rules;

/* A limit at work, which is yours: to save it, copy it. */
typedef struct {
    double rules[12], state[27];
} amt_limit;

/* How a limit stands, and what its verdict is. */
enum { AMT_GREEN, AMT_AMBER, AMT_RED, AMT_UNKNOWN, AMT_UNCALIBRATED };
enum { AMT_KEPT, AMT_EXCEEDED, AMT_NOT_KNOWN };

/* What is known of the sound of a value: bits. */
enum {
    AMT_IS_CLIPPED = 1,      /* it was clipped, so that the true value is another one */
    AMT_IS_UNCALIBRATED = 2, /* nobody knows what a sample of 1.0 is */
    AMT_IS_UNHEARD = 4       /* some of it was lost */
};

typedef struct {
    int32_t state, verdict; /* AMT_RED, AMT_EXCEEDED and their like */
    int64_t times;          /* how often it turned red */
    double worst, worst_s;  /* the worst value, and its time since the first one; NAN without one */
    double counted_s;       /* duration of all values */
    double unjudged_s;      /* of that, lost, uncalibrated, or clipped and not red */
} amt_result;

enum {
    AMT_E_MEMORY = -1,   /* a kernel needs more memory than the instance has: export it anew */
    AMT_E_OTHER = -2,    /* a state of another model, rate, block length or version */
    AMT_E_DAMAGED = -3,  /* a state that is not as it was saved */
    AMT_E_ARGUMENT = -4, /* a number below 0, or no such column */
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

/* Calibration: what a sample of 1.0 is in `input_unit`, such as pascal per full scale. 1 at first.
   With a gain that is not above 0, all samples are invalid. */
void AMT(set_gain)(amt *, float gain);

/* Takes up to `n` samples of each channel, and writes up to `room` frames of `columns` numbers, one
   frame after the other. `used`: how many samples it took; fewer than n where a block would give
   more frames than there is room for. Any n and room of 0 or more will do; frames are the same
   however a sound is cut. Returns the number of frames, or an error below 0.

   A sample that is NaN, or beyond 1e12 after the gain, counts as 0, see amt_invalid. */
int32_t AMT(process)(amt *, const float *const *channels, int32_t n, float *frames, int32_t room,
                     int32_t *used);

/* How many samples since the start or reset were invalid: NaN, or infinite or absurdly large, beyond
   1e12 after the gain. Their frames are not a reading. */
uint64_t AMT(invalid)(const amt *);

/* Writes the state, `state_bytes` bytes: the same on all processors, and in the middle of a block. */
void AMT(save)(const amt *, void *to);

/* amt_load goes on from a saved state; the gain stays. Returns 0, or an error with nothing changed. */
int32_t AMT(load)(amt *, const void *from, uint64_t bytes);

/* For a host that needs all that a model gives, such as specific loudness: the outputs of the last
   block, and the state. They stay where they are; MODEL.json of a library for an engine says what
   lies where. */
const uint8_t *AMT(outputs)(const amt *);
uint8_t *AMT(state)(amt *);

/* Begins to watch a column, counted from 0, at the next frame. Returns 0, or AMT_E_ARGUMENT. */
int32_t AMT(limit_begin)(amt_limit *, int32_t column, const amt_rules *);

/* Takes the value of the next frame, each in turn; `known`: bits such as AMT_IS_CLIPPED, or 0.
   Returns the state. It is AMT_UNKNOWN for what is not finite, as of silence or before the first
   reading, and where it is not green for sure, of sound that was clipped or lost. */
int32_t AMT(limit_take)(amt_limit *, float value, int32_t known);

/* The result of all values so far. */
void AMT(limit_result)(const amt_limit *, amt_result *);

#ifdef __cplusplus
}
#endif
