/* The frames of abi/wire.py: a length (4 bytes, little-endian), then one msgpack array whose first item is its kind. */
#ifndef BELLJAR_WIRE_H
#define BELLJAR_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FRAME_MAX (64u << 20)
#define HEADER 4

/* Reads msgpack values one after the other. The first value that is not as asked for sets `bad`; every later read
 * then gives zero, so a caller checks once, at the end. Each read gives whether it succeeded. */
struct reader {
    const uint8_t *at, *end;
    bool bad;
};

struct reader reader_of(const void *data, size_t length);
/* The count is at most as many as there are bytes left: a loop over it is bounded by the frame. */
bool read_array(struct reader *r, uint32_t *count);
bool read_map(struct reader *r, uint32_t *count);
bool read_int(struct reader *r, int64_t *value);
bool read_number(struct reader *r, double *value); /* an int or a float */
bool read_bool(struct reader *r, bool *value);
bool read_bytes(struct reader *r, const uint8_t **data, uint32_t *length); /* a str or a bin */
bool read_nil(struct reader *r); /* takes a nil if it is the next value; no mistake if it is not */
bool skip(struct reader *r);     /* any one value, however deep */
/* A read_bytes whose value is `text`. */
bool is_text(const uint8_t *data, uint32_t length, const char *text);

/* Writes msgpack values into a buffer that does not grow. Past its end nothing is written and `full` is set. */
struct writer {
    uint8_t *start, *at, *end;
    bool full;
};

struct writer writer_of(void *buffer, size_t size);
size_t written(const struct writer *w);
void put_array(struct writer *w, uint32_t count);
void put_map(struct writer *w, uint32_t count);
void put_int(struct writer *w, int64_t value);
void put_double(struct writer *w, double value);
void put_bool(struct writer *w, bool value);
void put_nil(struct writer *w);
void put_str(struct writer *w, const char *text);
void put_bytes(struct writer *w, const void *data, size_t length);
/* The head of a bin, whose contents follow by put_raw. */
void put_bytes_head(struct writer *w, size_t length);
void put_raw(struct writer *w, const void *data, size_t length);

/* The four bytes before a frame. */
size_t frame_length(const uint8_t *header);
void set_frame_length(uint8_t *header, size_t length);

/* For what happens before and after serving: they block. -1 with errno; EPROTO for a frame that is too long. */
int read_exactly(int fd, void *data, size_t length);
int write_all(int fd, const void *data, size_t length);
int send_frame(int fd, const void *body, size_t length);
/* Length of the frame's body, which was read into `buffer`; 0 at the end of the stream. */
ssize_t receive_frame(int fd, void *buffer, size_t size);
int send_ready(int fd, const char *const *layers, uint32_t count);
/* Failure with id 0, `error` and "step N (what): reason". */
int fail_step(int fd, int step, const char *what, int error);

#endif
