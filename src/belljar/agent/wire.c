/* The frames of abi/wire.py. See wire.h. */
#include "wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SMALL_FRAME 4096

struct reader reader_of(const void *data, size_t length) {
    const uint8_t *start = data;
    return (struct reader){start, start + length, false};
}

static bool fail(struct reader *r) {
    r->bad = true;
    r->at = r->end;
    return false;
}

static size_t left(const struct reader *r) {
    return (size_t)(r->end - r->at);
}

/* A big-endian number of so many bytes. */
static uint64_t take_number(struct reader *r, int width) {
    if (left(r) < (size_t)width) {
        fail(r);
        return 0;
    }
    uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value = value << 8 | *r->at++;
    return value;
}

static uint8_t take_kind(struct reader *r) {
    return (uint8_t)take_number(r, 1); /* at the end: 0 and bad, which callers check */
}

static bool read_count(struct reader *r, uint32_t *count, uint8_t fix, uint8_t wide, uint32_t each) {
    uint8_t kind = take_kind(r);
    uint64_t found = 0;
    *count = 0;
    if ((kind & 0xF0) == fix && !r->bad)
        found = kind & 0x0F;
    else if (kind == wide)
        found = take_number(r, 2);
    else if (kind == wide + 1)
        found = take_number(r, 4);
    else
        return fail(r);
    if (r->bad || found > left(r) / each)
        return fail(r);
    *count = (uint32_t)found;
    return true;
}

bool read_array(struct reader *r, uint32_t *count) {
    return read_count(r, count, 0x90, 0xDC, 1);
}

bool read_map(struct reader *r, uint32_t *count) {
    return read_count(r, count, 0x80, 0xDE, 2);
}

bool read_int(struct reader *r, int64_t *value) {
    uint8_t kind = take_kind(r);
    *value = 0;
    if (r->bad)
        return false;
    if (kind < 0x80 || kind >= 0xE0) {
        *value = (int8_t)kind;
        return true;
    }
    if (kind < 0xCC || kind > 0xD3)
        return fail(r);
    int width = 1 << ((kind - 0xCC) & 3);
    uint64_t found = take_number(r, width);
    if (r->bad)
        return false;
    if (kind < 0xD0) {
        if (found > INT64_MAX)
            return fail(r);
        *value = (int64_t)found;
    } else {
        int shift = 64 - 8 * width;
        *value = (int64_t)(found << shift) >> shift;
    }
    return true;
}

bool read_number(struct reader *r, double *value) {
    *value = 0;
    if (left(r) && (*r->at == 0xCA || *r->at == 0xCB)) {
        bool wide = take_kind(r) == 0xCB;
        uint64_t bits = take_number(r, wide ? 8 : 4);
        if (r->bad)
            return false;
        if (wide) {
            memcpy(value, &bits, sizeof *value);
        } else {
            uint32_t half = (uint32_t)bits;
            float single;
            memcpy(&single, &half, sizeof single);
            *value = (double)single;
        }
        return true;
    }
    int64_t whole;
    bool ok = read_int(r, &whole);
    *value = (double)whole;
    return ok;
}

bool read_bool(struct reader *r, bool *value) {
    uint8_t kind = take_kind(r);
    *value = false;
    if (r->bad || (kind != 0xC2 && kind != 0xC3))
        return fail(r);
    *value = kind == 0xC3;
    return true;
}

bool read_bytes(struct reader *r, const uint8_t **data, uint32_t *length) {
    static const uint8_t nothing[1];
    uint8_t kind = take_kind(r);
    uint64_t found = 0;
    *data = nothing;
    *length = 0;
    if (r->bad)
        return false;
    if ((kind & 0xE0) == 0xA0)
        found = kind & 0x1F;
    else if (kind >= 0xC4 && kind <= 0xC6)
        found = take_number(r, 1 << (kind - 0xC4));
    else if (kind >= 0xD9 && kind <= 0xDB)
        found = take_number(r, 1 << (kind - 0xD9));
    else
        return fail(r);
    if (r->bad || found > left(r))
        return fail(r);
    *data = r->at;
    *length = (uint32_t)found;
    r->at += found;
    return true;
}

bool read_nil(struct reader *r) {
    if (!left(r) || *r->at != 0xC0)
        return false;
    r->at++;
    return true;
}

bool skip(struct reader *r) {
    /* Values still to pass over: a count, not recursion, whatever the depth. */
    for (uint64_t values = 1; values && !r->bad; values--) {
        if (!left(r))
            return fail(r);
        uint8_t kind = *r->at;
        uint32_t count;
        const uint8_t *data;
        int64_t whole;
        double number;
        if ((kind & 0xF0) == 0x90 || kind == 0xDC || kind == 0xDD) {
            read_array(r, &count);
            values += count;
        } else if ((kind & 0xF0) == 0x80 || kind == 0xDE || kind == 0xDF) {
            read_map(r, &count);
            values += 2 * (uint64_t)count;
        } else if (kind == 0xC0 || kind == 0xC2 || kind == 0xC3) {
            r->at++;
        } else if (kind == 0xCA || kind == 0xCB) {
            read_number(r, &number);
        } else if (kind < 0x80 || kind >= 0xE0 || (kind >= 0xCC && kind <= 0xD3)) {
            if (kind == 0xCF)
                r->at++, take_number(r, 8); /* may be over what an int64_t holds */
            else
                read_int(r, &whole);
        } else {
            read_bytes(r, &data, &count);
        }
    }
    return !r->bad;
}

bool is_text(const uint8_t *data, uint32_t length, const char *text) {
    return length == strlen(text) && memcmp(data, text, length) == 0;
}

struct writer writer_of(void *buffer, size_t size) {
    uint8_t *start = buffer;
    return (struct writer){start, start, start + size, false};
}

size_t written(const struct writer *w) {
    return (size_t)(w->at - w->start);
}

void put_raw(struct writer *w, const void *data, size_t length) {
    if (w->full || (size_t)(w->end - w->at) < length) {
        w->full = true;
        return;
    }
    if (length)
        memcpy(w->at, data, length);
    w->at += length;
}

static void put_head(struct writer *w, uint8_t kind, uint64_t value, int width) {
    uint8_t bytes[9] = {kind};
    for (int i = 0; i < width; i++)
        bytes[width - i] = (uint8_t)(value >> (8 * i));
    put_raw(w, bytes, (size_t)width + 1);
}

static void put_count(struct writer *w, uint32_t count, uint8_t fix, uint8_t wide) {
    if (count < 16)
        put_head(w, (uint8_t)(fix | count), 0, 0);
    else
        put_head(w, wide, count, 4);
}

void put_array(struct writer *w, uint32_t count) {
    put_count(w, count, 0x90, 0xDD);
}

void put_map(struct writer *w, uint32_t count) {
    put_count(w, count, 0x80, 0xDF);
}

void put_int(struct writer *w, int64_t value) {
    if (value >= 0 && value < 128)
        put_head(w, (uint8_t)value, 0, 0);
    else
        put_head(w, 0xD3, (uint64_t)value, 8);
}

void put_double(struct writer *w, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_head(w, 0xCB, bits, 8);
}

void put_bool(struct writer *w, bool value) {
    put_head(w, value ? 0xC3 : 0xC2, 0, 0);
}

void put_nil(struct writer *w) {
    put_head(w, 0xC0, 0, 0);
}

void put_str(struct writer *w, const char *text) {
    size_t length = strlen(text);
    if (length < 32) /* the tag of a frame must be so */
        put_head(w, (uint8_t)(0xA0 | length), 0, 0);
    else
        put_head(w, 0xDB, length, 4);
    put_raw(w, text, length);
}

void put_bytes_head(struct writer *w, size_t length) {
    put_head(w, 0xC6, length, 4);
}

void put_bytes(struct writer *w, const void *data, size_t length) {
    put_bytes_head(w, length);
    put_raw(w, data, length);
}

int read_exactly(int fd, void *data, size_t length) {
    uint8_t *at = data;
    while (length) {
        ssize_t count = read(fd, at, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            if (count == 0)
                errno = at == data ? 0 : EPROTO;
            return -1;
        }
        at += count;
        length -= (size_t)count;
    }
    return 0;
}

int write_all(int fd, const void *data, size_t length) {
    const uint8_t *at = data;
    while (length) {
        ssize_t count = write(fd, at, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        at += count;
        length -= (size_t)count;
    }
    return 0;
}

size_t frame_length(const uint8_t *header) {
    return header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16 | (size_t)header[3] << 24;
}

void set_frame_length(uint8_t *header, size_t length) {
    for (int i = 0; i < HEADER; i++)
        header[i] = (uint8_t)(length >> (8 * i));
}

int send_frame(int fd, const void *body, size_t length) {
    uint8_t header[HEADER];
    set_frame_length(header, length);
    if (write_all(fd, header, HEADER) != 0)
        return -1;
    return write_all(fd, body, length);
}

ssize_t receive_frame(int fd, void *buffer, size_t size) {
    uint8_t header[HEADER];
    if (read_exactly(fd, header, HEADER) != 0)
        return errno ? -1 : 0;
    size_t length = frame_length(header);
    if (length == 0 || length > size) {
        errno = EPROTO;
        return -1;
    }
    if (read_exactly(fd, buffer, length) != 0) {
        errno = errno ? errno : EPROTO;
        return -1;
    }
    return (ssize_t)length;
}

int send_ready(int fd, const char *const *layers, uint32_t count) {
    uint8_t buffer[SMALL_FRAME];
    struct writer w = writer_of(buffer, sizeof buffer);
    put_array(&w, 3);
    put_str(&w, "ready");
    put_array(&w, count);
    for (uint32_t i = 0; i < count; i++)
        put_str(&w, layers[i]);
    put_int(&w, getpid());
    return send_frame(fd, buffer, written(&w));
}

int fail_step(int fd, int step, const char *what, int error) {
    char text[512];
    uint8_t buffer[1024];
    int length = snprintf(text, sizeof text, "step %d (%s): %s", step, what, strerror(error));
    struct writer w = writer_of(buffer, sizeof buffer);
    put_array(&w, 4);
    put_str(&w, "failure");
    put_int(&w, 0);
    put_int(&w, error);
    put_bytes(&w, text, length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    return send_frame(fd, buffer, written(&w));
}
