/* Folds one block into the state. Included by each instruction set after its `vector`, `lanes`, `load`,
 * `four_rounds`, `next_words` and `add`. */
static inline lanes fold(lanes s, const unsigned char *data)
{
    const uint32_t *k = tni_sha256_constants;
    lanes before = s;
    vector w0 = load(data), w1 = load(data + 16), w2 = load(data + 32), w3 = load(data + 48);
    for (int i = 0; i < 3; i++, k += 16) {
        s = four_rounds(s, w0, k);
        w0 = next_words(w0, w1, w2, w3);
        s = four_rounds(s, w1, k + 4);
        w1 = next_words(w1, w2, w3, w0);
        s = four_rounds(s, w2, k + 8);
        w2 = next_words(w2, w3, w0, w1);
        s = four_rounds(s, w3, k + 12);
        w3 = next_words(w3, w0, w1, w2);
    }
    s = four_rounds(s, w0, k);
    s = four_rounds(s, w1, k + 4);
    s = four_rounds(s, w2, k + 8);
    s = four_rounds(s, w3, k + 12);
    return add(s, before);
}
