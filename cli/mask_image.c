#include "mask_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static tn_status no_memory(tn_error *err)
{
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "", "out of memory for a picture");
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Makes an empty picture of that many blocks, or of every n-th. */
static tn_status create_image(int64_t rows, int64_t columns, mask_image *out, tn_error *err)
{
    out->rows = least(rows, MASK_SIDE_MOST);
    out->columns = least(columns, MASK_SIDE_MOST);
    out->cells = calloc((size_t)(out->rows * out->columns) + 1, 1);
    return out->cells ? TN_OK : no_memory(err);
}

void mask_image_release(mask_image *image)
{
    free(image->cells);
    *image = (mask_image){0};
}

/* Marks the listed blocks of the rows of the picture; `starts` are those of the head. */
static void mark_lists(const tn_attention_video_tables *tables, int64_t tiles, mask_image *image)
{
    for (int64_t row = 0; row < image->rows; row++) {
        const int64_t block = row * tables->blocks / image->rows;
        for (int32_t i = tables->starts[block]; i < tables->starts[block + 1]; i++) {
            const int64_t key = tables->listed[i];
            uint8_t *cell =
                &image->cells[row * image->columns + key * image->columns / tables->blocks];
            *cell = block >= tiles || key >= tiles ? MASK_TEXT : MASK_SEEN;
        }
    }
}

tn_status mask_image_of_window(const tn_attention_video_args *args, int64_t text, int32_t head,
                               mask_image *out, tn_error *err)
{
    tn_attention_video_args one = *args;
    tn_attention_video_tables tables = {.struct_size = sizeof tables, .text = 0};
    one.windows = args->windows + (args->window_count > 1 ? 3 * head : 0);
    one.window_count = 1;
    tn_status status = tn_attention_video_tables_get(&one, &tables, err);
    const int64_t tiles = tables.blocks;
    tables.text = text;
    if (!status)
        status = tn_attention_video_tables_get(&one, &tables, err);
    if (status)
        return status;
    tables.starts = malloc(((size_t)tables.blocks + 1) * sizeof *tables.starts);
    tables.listed = malloc(((size_t)tables.entries + 1) * sizeof *tables.listed);
    status = tables.starts && tables.listed ? create_image(tables.blocks, tables.blocks, out, err)
                                            : no_memory(err);
    if (!status)
        status = tn_attention_video_tables_get(&one, &tables, err);
    if (!status)
        mark_lists(&tables, tiles, out);
    free(tables.starts);
    free(tables.listed);
    return status;
}

/* The number of a field of a canonical problem; `other` if it is left out. */
static int64_t number_of(const char *problem, const char *key, int64_t other)
{
    const size_t size = strlen(key);
    const char *at = strchr(problem, ':');
    for (at = at ? strchr(at + 1, ':') : NULL; at; at = strchr(at + 1, ',')) {
        if (strncmp(at + 1, key, size) == 0 && at[1 + size] == '=')
            return strtoll(at + 2 + size, NULL, 10);
    }
    return other;
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

tn_status mask_image_of_problem(const char *problem, int32_t head, mask_image *out, tn_error *err)
{
    const int64_t both = number_of(problem, "l", 0), slots = number_of(problem, "slots", -1);
    const int64_t queries = slots < 0 ? number_of(problem, "lq", both) : slots;
    const int64_t keys = slots < 0 ? number_of(problem, "lk", both) : slots;
    const int64_t height = number_of(problem, "bq", 1), width = number_of(problem, "bk", height);
    const int64_t rows = (queries + height - 1) / height, columns = (keys + width - 1) / width;
    const int64_t heads = number_of(problem, "b", 1) * number_of(problem, "h", 1);
    const int64_t entries = number_of(problem, "entries", -1);
    const double all = (double)heads * (double)rows * (double)columns;
    const double share = entries < 0 ? 0.5 : all > (double)entries ? (double)entries / all : 1;
    uint64_t state = (uint64_t)head + 1;
    const tn_status status = create_image(rows, columns, out, err);
    for (int64_t row = 0; row < out->rows && !status; row++) {
        const int64_t before = (int64_t)(share * (double)(row * out->columns) + 0.5);
        int64_t left = (int64_t)(share * (double)((row + 1) * out->columns) + 0.5) - before;
        for (int64_t column = 0; column < out->columns; column++) {
            const uint64_t rest = (uint64_t)(out->columns - column);
            const bool is_listed = draw(&state) % rest < (uint64_t)left;
            out->cells[row * out->columns + column] = is_listed ? MASK_SEEN : MASK_UNSEEN;
            left -= is_listed;
        }
    }
    return status;
}

/* A color of the picture. */
static const struct {
    uint8_t red, green, blue;
} colors[MASK_CELLS] = {{0xf4, 0xf4, 0xf0}, {0x2b, 0x6c, 0xb0}, {0xd6, 0x9e, 0x2e}};

/* Draws the cells of a color as one path of horizontal runs. */
static void draw_cells(const mask_image *image, uint8_t color, FILE *to)
{
    bool any = false;
    for (int64_t row = 0; row < image->rows; row++) {
        const uint8_t *cells = image->cells + row * image->columns;
        for (int64_t column = 0; column < image->columns; column++) {
            const int64_t first = column;
            while (column < image->columns && cells[column] == color)
                column++;
            if (column == first)
                continue;
            if (!any)
                fprintf(to, "<path fill=\"#%02x%02x%02x\" d=\"", colors[color].red,
                        colors[color].green, colors[color].blue);
            fprintf(to, "M%" PRId64 " %" PRId64 "h%" PRId64 "v1h-%" PRId64 "z", first, row,
                    column - first, column - first);
            any = true;
        }
    }
    if (any)
        fprintf(to, "\"/>\n");
}

void mask_image_draw(const mask_image *image, int32_t width, bool is_file, FILE *to)
{
    fprintf(to,
            "<svg %s width=\"%" PRId32 "\" viewBox=\"0 0 %" PRId64 " %" PRId64
            "\" shape-rendering=\"crispEdges\">\n",
            is_file ? "xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" : "aria-hidden=\"true\"",
            width, image->columns, image->rows);
    if (is_file)
        fprintf(to,
                "<title>Blocks of keys, from left to right, that blocks of queries, from top to "
                "bottom, see</title>\n");
    fprintf(to, "<rect width=\"%" PRId64 "\" height=\"%" PRId64 "\" fill=\"#%02x%02x%02x\"/>\n",
            image->columns, image->rows, colors[0].red, colors[0].green, colors[0].blue);
    draw_cells(image, MASK_SEEN, to);
    draw_cells(image, MASK_TEXT, to);
    fprintf(to, "</svg>\n");
}

/* PNG: chunks with checksums. The image data is stored, in blocks of at most 65535 bytes. */
typedef struct png {
    FILE *to;
    uint32_t crc;       /* of the chunk */
    uint32_t low, high; /* Adler's checksum of the image data */
    uint64_t left;      /* bytes of image data */
    uint32_t block;     /* bytes left in its current block */
} png;

static void put_bytes(png *p, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    for (size_t i = 0; i < size; i++) {
        p->crc ^= from[i];
        for (int bit = 0; bit < 8; bit++)
            p->crc = p->crc >> 1 ^ (p->crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    fwrite(bytes, 1, size, p->to);
}

static void put_number(png *p, uint32_t number)
{
    const uint8_t bytes[] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16),
                             (uint8_t)(number >> 8), (uint8_t)number};
    put_bytes(p, bytes, sizeof bytes);
}

static void begin_chunk(png *p, const char *name, uint32_t size)
{
    put_number(p, size);
    p->crc = UINT32_MAX;
    put_bytes(p, name, 4);
}

static void end_chunk(png *p)
{
    put_number(p, ~p->crc);
}

/* Writes a byte of the image data, and the header of its block before the first one. */
static void put_data(png *p, uint8_t byte)
{
    enum { BLOCK = 65535, MODULUS = 65521 };
    if (p->block == 0) {
        p->block = p->left < BLOCK ? (uint32_t)p->left : BLOCK;
        const uint8_t header[] = {p->left <= BLOCK, (uint8_t)p->block, (uint8_t)(p->block >> 8),
                                  (uint8_t)~p->block, (uint8_t)(~p->block >> 8)};
        put_bytes(p, header, sizeof header);
    }
    p->low = (p->low + byte) % MODULUS;
    p->high = (p->high + p->low) % MODULUS;
    p->block--;
    p->left--;
    put_bytes(p, &byte, 1);
}

/* Pixels of a cell: small pictures are enlarged. */
static int64_t pixels_of(const mask_image *image)
{
    const int64_t side = image->rows > image->columns ? image->rows : image->columns;
    return side > 0 && side < 512 ? 512 / side : 1;
}

/* Writes the rows, four pixels of two bits in a byte, each after a byte that says that it is not filtered. */
static void put_rows(png *p, const mask_image *image, int64_t size)
{
    const int64_t width = image->columns * size;
    for (int64_t y = 0; y < image->rows * size; y++) {
        const uint8_t *cells = image->cells + y / size * image->columns;
        put_data(p, 0);
        for (int64_t x = 0; x < width; x += 4) {
            uint32_t byte = 0;
            for (int64_t i = 0; i < 4; i++)
                byte = byte << 2 | (x + i < width ? cells[(x + i) / size] : 0U);
            put_data(p, (uint8_t)byte);
        }
    }
}

void mask_image_write_png(const mask_image *image, FILE *to)
{
    enum { DEPTH = 2, PALETTE = 3, BLOCK = 65535 };
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t header[] = {DEPTH, PALETTE, 0, 0, 0}, deflate[] = {0x78, 0x01};
    const int64_t size = pixels_of(image);
    const uint64_t data =
        (uint64_t)(image->rows * size) * (1 + ((uint64_t)(image->columns * size) + 3) / 4);
    const uint64_t blocks = (data + BLOCK - 1) / BLOCK;
    png p = {.to = to, .low = 1, .left = data};
    put_bytes(&p, signature, sizeof signature);
    begin_chunk(&p, "IHDR", 13);
    put_number(&p, (uint32_t)(image->columns * size));
    put_number(&p, (uint32_t)(image->rows * size));
    put_bytes(&p, header, sizeof header);
    end_chunk(&p);
    begin_chunk(&p, "PLTE", sizeof colors);
    put_bytes(&p, colors, sizeof colors);
    end_chunk(&p);
    begin_chunk(&p, "IDAT", (uint32_t)(sizeof deflate + data + 5 * blocks + 4));
    put_bytes(&p, deflate, sizeof deflate);
    put_rows(&p, image, size);
    put_number(&p, p.high << 16 | p.low);
    end_chunk(&p);
    begin_chunk(&p, "IEND", 0);
    end_chunk(&p);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t size = strlen(name), last = strlen(end);
    return size > last && strcmp(name + size - last, end) == 0;
}

tn_status mask_image_save(const mask_image *image, const char *name, tn_error *err)
{
    const bool as_png = ends_with(name, ".png");
    if (!as_png && !ends_with(name, ".svg"))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                       "--mask-image: expected a name that ends with .png or .svg, got \"%.80s\"",
                       name);
    if (image->rows == 0 || image->columns == 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                       "--mask-image: expected blocks of queries and of keys, got none");
    errno = 0;
    FILE *file = fopen(name, "wb");
    int failed = file ? 0 : errno;
    if (file) {
        if (as_png)
            mask_image_write_png(image, file);
        else
            mask_image_draw(image, 360, true, file);
        failed = ferror(file) ? EIO : 0;
        if (fclose(file) != 0 && !failed)
            failed = errno ? errno : EIO;
    }
    return failed ? tn_fail(err, TN_IO, failed, "--mask-image", "%s: %s", name, strerror(failed))
                  : TN_OK;
}
