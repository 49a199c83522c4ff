/* Prints the frames of a sound: reads samples of 32-bit float, channels interleaved, from standard
   input. The argument is the gain, such as pascal per full scale.

       ffmpeg -v error -i sound.wav -f f32le -ac 2 -ar 48000 - | ./meter 20 */
#include "amt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

enum { SAMPLES = 1024, FRAMES = 1024 };

int main(int count, char **arguments) {
    const amt_info *about = AMT(about)();
    const amt_column *columns = AMT(columns)();
    const size_t channels = (size_t)about->channels, width = (size_t)about->columns;
    amt *meter = AMT(create)(NULL);
    float *sound = malloc(sizeof(float) * channels * SAMPLES);
    float *apart = malloc(sizeof(float) * channels * SAMPLES);
    float *frames = malloc(sizeof(float) * width * FRAMES);
    const float **each = malloc(sizeof *each * channels);
#ifdef _WIN32
    _setmode(_fileno(stdin), _O_BINARY);
#endif
    if (!meter || !sound || !apart || !frames || !each) return 1;
    if (count > 1) {
        char *end;
        const float gain = strtof(arguments[1], &end);
        if (end == arguments[1] || *end || !(gain > 0 && gain < HUGE_VALF)) {
            fprintf(stderr, "the gain is %s: give a number above 0, such as 20\n", arguments[1]);
            return 2;
        }
        AMT(set_gain)(meter, gain);
    }
    printf("time_s");
    for (size_t c = 0; c < width; c++) {
        const char *name = columns[c].name, *unit = columns[c].unit;
        printf(strstr(name, unit) ? ",%s" : ",%s_%s", name, unit);
    }
    printf("\n");
    double frame = 0;
    size_t n;
    while ((n = fread(sound, sizeof(float) * channels, SAMPLES, stdin)) > 0) {
        for (size_t c = 0; c < channels; c++)
            for (size_t k = 0; k < n; k++) apart[c * SAMPLES + k] = sound[k * channels + c];
        for (size_t done = 0; done < n;) {
            int32_t used, given;
            for (size_t c = 0; c < channels; c++) each[c] = apart + c * SAMPLES + done;
            given = AMT(process)(meter, each, (int32_t)(n - done), frames, FRAMES, &used);
            if (given < 0) {
                fprintf(stderr, "%s: error %d\n", about->model, given);
                return 1;
            }
            done += (size_t)used;
            for (int32_t f = 0; f < given; f++, frame++) {
                printf("%.4f", frame * about->frame_s - about->latency_s);
                for (size_t c = 0; c < width; c++) printf(",%.7g", frames[(size_t)f * width + c]);
                printf("\n");
            }
        }
    }
    if (AMT(invalid)(meter)) fprintf(stderr, "some samples are not numbers\n");
    AMT(destroy)(meter);
    free(sound), free(apart), free(frames), free((void *)each);
    return 0;
}
