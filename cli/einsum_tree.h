/* The tree of an einsum's path: which step contracts which terms. */
#ifndef TENON_CLI_EINSUM_TREE_H
#define TENON_CLI_EINSUM_TREE_H

#include "tenon/tenon.h"

#include <stdio.h>

/* A term is an operand, or the result of a step, whose number is `operands` + that of the step. */
typedef struct einsum_tree {
    const tn_einsum_path *path;
    int32_t operands, steps;
    int32_t parts[2 * TN_EINSUM_OPERANDS_MAX][2]; /* terms that each step contracts; -1: none */
} einsum_tree;

/* Thread-safety: None. */
void einsum_tree_make(const tn_einsum_path *path, int32_t operands, einsum_tree *out);

/* The labels of a part of an equation: the n-th before "->", or with -1 those after it; "1" if there are
 * none. */
const char *einsum_labels(const char *equation, int32_t part, size_t *out_size);

/* Writes the tree as SVG. Thread-safety: None. */
void einsum_tree_draw(const einsum_tree *of, const char *equation, FILE *to);

#endif
