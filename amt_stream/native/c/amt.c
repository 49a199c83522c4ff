/* The runtime of every model: it gives the plan its addresses, collects whole blocks and calls the
   model's one entry. AMT_PLAN is the header that `amt-stream export` wrote for the model. */
#include "amt.h"
#include "amt_numba.h"

#include <math.h>
#include <string.h>
#ifndef AMT_NO_MALLOC
#include <stdlib.h>
#endif
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { NUMBER, KERNEL, TABLE, WORK, STATE, INPUT, OUTPUT };

typedef struct {
    int32_t row, segment;
    int64_t value, sizes[4];
} plan_row;

/* Of a column: whether it is of all sound so far, and whether louder sound can only raise it. */
typedef struct {
    int32_t counted, rises;
} limit_column;

#include AMT_PLAN

#define WIDTH 5
#define ALIGNED _Alignas(64)
/* At least a byte, so that no array is empty. */
#define ROOM(bytes) ((bytes) + 64)

/* In the object of the model: addresses of kernels, constant tables, the state before the first
   sample, and what calls the kernels. */
extern void *const PLAN_KERNELS[];
extern const uint8_t PLAN_TABLES[], PLAN_INITIAL[];
extern int32_t PLAN_ENTRY(void *result, void **error, void *, void *, int64_t numbers, int64_t item,
                          void *plan, int64_t rows, int64_t width, int64_t row_stride,
                          int64_t stride, void *, void *, int64_t, int64_t like_item, void *like,
                          int64_t, int64_t like_stride);


/* A vector of doubles, as a kernel takes it. */
#define VECTOR void *, void *, int64_t, int64_t, double *, int64_t, int64_t
#define AS_VECTOR(x, size) NULL, NULL, size, 8, x, size, 8
extern int32_t PLAN_LIMIT_BEGIN(void *result, void **error, VECTOR);
extern int32_t PLAN_LIMIT_TAKE(int64_t *result, void **error, VECTOR, VECTOR, double, int64_t);
extern int32_t PLAN_LIMIT_VERDICT(int64_t *result, void **error, VECTOR, VECTOR);

struct amt {
    ALIGNED uint8_t state[ROOM(PLAN_STATE)];
    ALIGNED float input[PLAN_CHANNELS * PLAN_BLOCK]; /* (channel, time) */
    ALIGNED int64_t plan[PLAN_ROWS * WIDTH];
    ALIGNED uint8_t work[ROOM(PLAN_WORK)];
    ALIGNED uint8_t output[ROOM(PLAN_OUTPUT)];
    ALIGNED uint8_t scratch[ROOM(PLAN_SCRATCH)];
    uint64_t invalid;
    int32_t filled; /* samples in `input` */
    float gain;
    void *allocated; /* the memory that it is in, if it is to be freed */
};

/* What amt_save writes, followed by the state and the input. */
typedef struct {
    char magic[4];
    int32_t filled;
    uint64_t digest, checksum, invalid;
} saved;

#define SAVED_BYTES (sizeof(saved) + PLAN_STATE + sizeof(((amt *)0)->input))

static const amt_info about = {sizeof(amt_info),
                               PLAN_MODEL,
                               PLAN_VERSION,
                               PLAN_INPUT_UNIT,
                               PLAN_FS,
                               PLAN_CHANNELS,
                               PLAN_BLOCK,
                               PLAN_COLUMNS,
                               PLAN_FRAMES,
                               (double)PLAN_BLOCK / PLAN_FS / PLAN_FRAMES,
                               PLAN_LATENCY_S,
                               PLAN_SETTLE_S,
                               PLAN_TAIL_S,
                               sizeof(amt),
                               SAVED_BYTES};

const amt_info *AMT(about)(void) { return &about; }

const amt_column *AMT(columns)(void) { return columns; }

static int64_t number_of(amt *m, const plan_row *r) {
    switch (r->segment) {
    case KERNEL: return (int64_t)(intptr_t)PLAN_KERNELS[r->value];
    case TABLE: return (int64_t)(intptr_t)(PLAN_TABLES + r->value);
    case WORK: return (int64_t)(intptr_t)(m->work + r->value);
    case STATE: return (int64_t)(intptr_t)(m->state + r->value);
    case INPUT: return (int64_t)(intptr_t)m->input;
    case OUTPUT: return (int64_t)(intptr_t)(m->output + r->value);
    default: return r->value;
    }
}

void AMT(reset)(amt *m) {
    memset(m->state, 0, PLAN_STATE);
    memcpy(m->state, PLAN_INITIAL, PLAN_BEGUN);
    memset(m->input, 0, sizeof m->input);
    memset(m->plan, 0, sizeof m->plan);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int64_t *to = m->plan + (size_t)rows[k].row * WIDTH;
        to[0] = number_of(m, rows + k);
        memcpy(to + 1, rows[k].sizes, sizeof rows[k].sizes);
    }
    m->filled = 0;
    m->invalid = 0;
}

amt *AMT(create)(void *memory) {
    amt *m = memory;
    void *allocated = NULL;
#ifndef AMT_NO_MALLOC
    /* Windows has no aligned_alloc. */
    if (!m && (allocated = malloc(sizeof(amt) + 63)))
        m = (amt *)(((uintptr_t)allocated + 63) / 64 * 64);
#endif
    if (!m) return NULL;
    memset(m, 0, sizeof *m);
    m->gain = 1.0f;
    m->allocated = allocated;
    AMT(reset)(m);
    return m;
}

void AMT(destroy)(amt *m) {
#ifndef AMT_NO_MALLOC
    if (m) free(m->allocated);
#else
    (void)m;
#endif
}

void AMT(set_gain)(amt *m, float gain) { m->gain = gain > 0 ? gain : NAN; }

uint64_t AMT(invalid)(const amt *m) { return m->invalid; }

const uint8_t *AMT(outputs)(const amt *m) { return m->output; }

uint8_t *AMT(state)(amt *m) { return m->state; }

/* Numbers too small for their format slow a processor down a hundred times; they count as 0, as in
   the Python engine. WebAssembly has no such mode, and filters here need none. */
#if defined(__SSE__)
typedef unsigned int float_mode;
static float_mode flush_small(void) {
    float_mode before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    return before;
}
static void restore(float_mode before) { _mm_setcsr(before); }
#elif defined(__aarch64__)
typedef uint64_t float_mode;
static float_mode flush_small(void) {
    float_mode before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | 1u << 24));
    return before;
}
static void restore(float_mode before) { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
#else
typedef int float_mode;
static float_mode flush_small(void) { return 0; }
static void restore(float_mode before) { (void)before; }
#endif

static int32_t run(amt *m) {
    void *result = NULL, *error = NULL;
    float like = 0;
    amt_scratch scratch = {m->scratch, PLAN_SCRATCH, 0, NULL, 0};
    amt_running = &scratch;
    float_mode before = flush_small();
    int32_t status =
        PLAN_ENTRY(&result, &error, NULL, NULL, PLAN_ROWS * WIDTH, 8, m->plan, PLAN_ROWS, WIDTH,
                   WIDTH * 8, 8, NULL, NULL, 0, sizeof like, &like, 0, sizeof like);
    restore(before);
    amt_running = NULL;
    if (status) return scratch.is_short ? AMT_E_MEMORY : AMT_E_KERNEL;
    /* An entry that gives a bool gives whether its tables fit, as they do. */
    if (PLAN_GIVES && !*(uint8_t *)&result) return AMT_E_KERNEL;
    return 0;
}

/* Beyond it the memory of some models would not recover, as of infinity. */
#define LARGEST 1e12f

static void take(amt *m, const float *const *channels, int32_t from, int32_t count) {
    for (int32_t c = 0; c < PLAN_CHANNELS; c++) {
        float *to = m->input + (size_t)c * PLAN_BLOCK + m->filled;
        for (int32_t k = 0; k < count; k++) {
            float x = channels[c][from + k] * m->gain;
            int is_sound = x >= -LARGEST && x <= LARGEST; /* which NaN is not */
            m->invalid += !is_sound;
            to[k] = is_sound ? x : 0.0f;
        }
    }
    m->filled += count;
}

static void give(const amt *m, float *frames) {
    for (int32_t c = 0; c < PLAN_COLUMNS; c++) {
        const float *from = (const float *)(m->output + column_places[c]);
        for (int32_t f = 0; f < PLAN_FRAMES; f++) frames[f * PLAN_COLUMNS + c] = from[f];
    }
}

int32_t AMT(process)(amt *m, const float *const *channels, int32_t n, float *frames, int32_t room,
                     int32_t *used) {
    int32_t at = 0, written = 0;
    *used = 0;
    if (n < 0 || room < 0) return AMT_E_ARGUMENT;
    while (at < n) {
        int32_t count = PLAN_BLOCK - m->filled;
        if (count > n - at) count = n - at;
        int ends = m->filled + count == PLAN_BLOCK;
        if (ends && room - written < PLAN_FRAMES) {
            /* All but the last sample of the block, which would give frames. */
            take(m, channels, at, count - 1);
            at += count - 1;
            break;
        }
        take(m, channels, at, count);
        at += count;
        if (!ends) break;
        m->filled = 0;
        int32_t status = run(m);
        if (status) {
            *used = at;
            return status;
        }
        give(m, frames + (size_t)written * PLAN_COLUMNS);
        written += PLAN_FRAMES;
    }
    *used = at;
    return written;
}

/* FNV-1a */
static uint64_t checksum(const uint8_t *bytes, size_t count, uint64_t sum) {
    for (size_t k = 0; k < count; k++) sum = (sum ^ bytes[k]) * UINT64_C(1099511628211);
    return sum;
}

static uint64_t sum_of(saved head, const uint8_t *rest) {
    head.checksum = 0;
    uint64_t sum = checksum((const uint8_t *)&head, sizeof head, UINT64_C(14695981039346656037));
    return checksum(rest, SAVED_BYTES - sizeof head, sum);
}

void AMT(save)(const amt *m, void *to) {
    uint8_t *rest = (uint8_t *)to + sizeof(saved);
    saved head = {"AMT", m->filled, PLAN_DIGEST, 0, m->invalid};
    head.magic[3] = '1';
    memcpy(rest, m->state, PLAN_STATE);
    memcpy(rest + PLAN_STATE, m->input, sizeof m->input);
    head.checksum = sum_of(head, rest);
    memcpy(to, &head, sizeof head);
}

int32_t AMT(load)(amt *m, const void *from, uint64_t bytes) {
    saved head;
    const uint8_t *rest = (const uint8_t *)from + sizeof head;
    if (bytes < sizeof head) return AMT_E_DAMAGED;
    memcpy(&head, from, sizeof head);
    if (memcmp(head.magic, "AMT1", 4)) return AMT_E_DAMAGED;
    if (head.digest != PLAN_DIGEST) return AMT_E_OTHER;
    if (bytes != SAVED_BYTES || head.checksum != sum_of(head, rest)) return AMT_E_DAMAGED;
    if (head.filled < 0 || head.filled >= PLAN_BLOCK) return AMT_E_DAMAGED;
    memcpy(m->state, rest, PLAN_STATE);
    memcpy(m->input, rest + PLAN_STATE, sizeof m->input);
    m->filled = head.filled;
    m->invalid = head.invalid;
    return 0;
}

#define RULES(limit) AS_VECTOR((double *)(limit)->rules, PLAN_LIMIT_RULES)
#define LIMIT_STATE(limit) AS_VECTOR((double *)(limit)->state, PLAN_LIMIT_STATE + 1)

int32_t AMT(limit_begin)(amt_limit *l, int32_t column, const amt_rules *given) {
    _Static_assert(sizeof l->rules == PLAN_LIMIT_RULES * sizeof(double), "rules of amt.h");
    _Static_assert(sizeof l->state == (PLAN_LIMIT_STATE + 1) * sizeof(double), "state of amt.h");
    if (column < 0 || column >= PLAN_COLUMNS) return AMT_E_ARGUMENT;
    if (!(given->hysteresis >= 0 && given->hold_s >= 0) || given->threshold != given->threshold)
        return AMT_E_ARGUMENT;
    const limit_column *of = limit_columns + column;
    double *rules = l->rules;
    memset(l, 0, sizeof *l);
    rules[PLAN_LIMIT_SIGN] = given->below ? -1 : 1;
    rules[PLAN_LIMIT_THRESHOLD] = given->threshold;
    rules[PLAN_LIMIT_AMBER_FROM] = given->amber == given->amber ? given->amber : given->threshold;
    rules[PLAN_LIMIT_HYSTERESIS] = given->hysteresis;
    rules[PLAN_LIMIT_HOLD_S] = given->hold_s;
    rules[PLAN_LIMIT_AT_END] = given->at_end != 0;
    rules[PLAN_LIMIT_STEP_S] = about.frame_s;
    rules[PLAN_LIMIT_COUNTED] = of->counted;
    rules[PLAN_LIMIT_RISES] = of->rises;
    void *result = NULL, *error = NULL;
    return PLAN_LIMIT_BEGIN(&result, &error, LIMIT_STATE(l)) ? AMT_E_KERNEL : 0;
}

int32_t AMT(limit_take)(amt_limit *l, float value, int32_t known) {
    int64_t state = AMT_UNKNOWN;
    void *error = NULL;
    int32_t status = PLAN_LIMIT_TAKE(&state, &error, RULES(l), LIMIT_STATE(l), value, known);
    return status ? AMT_E_KERNEL : (int32_t)state;
}

void AMT(limit_result)(const amt_limit *l, amt_result *to) {
    int64_t verdict = AMT_NOT_KNOWN;
    void *error = NULL;
    const double *state = l->state;
    PLAN_LIMIT_VERDICT(&verdict, &error, RULES(l), LIMIT_STATE(l));
    *to = (amt_result){.state = (int32_t)state[PLAN_LIMIT_LAST],
                             .verdict = (int32_t)verdict,
                             .times = (int64_t)state[PLAN_LIMIT_TIMES],
                             .worst = l->rules[PLAN_LIMIT_SIGN] * state[PLAN_LIMIT_WORST],
                             .worst_s = state[PLAN_LIMIT_WORST_S],
                             .counted_s = state[PLAN_LIMIT_COUNTED_S],
                             .unjudged_s = state[PLAN_LIMIT_UNJUDGED_S]};
}
