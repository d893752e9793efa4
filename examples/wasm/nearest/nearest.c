/* nearest WORD: which words of standard input are fewest edits away from WORD. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 256 };

static int least(int a, int b, int c) {
    int smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

static int distance(const char *from, const char *to) {
    static int row[LONGEST + 1];
    int width = (int)strlen(to);
    for (int column = 0; column <= width; column++) row[column] = column;
    for (int line = 1; from[line - 1]; line++) {
        int diagonal = row[0];
        row[0] = line;
        for (int column = 1; column <= width; column++) {
            int above = row[column];
            int change = diagonal + (from[line - 1] != to[column - 1]);
            row[column] = least(above + 1, row[column - 1] + 1, change);
            diagonal = above;
        }
    }
    return row[width];
}

int main(int argc, char **argv) {
    if (argc != 2 || strlen(argv[1]) > LONGEST) {
        fprintf(stderr, "usage: nearest WORD < words\n");
        return 2;
    }
    char word[LONGEST + 1];
    char *best = NULL;
    size_t used = 0;
    int fewest = -1;
    while (scanf("%256s", word) == 1) {
        int edits = distance(word, argv[1]);
        if (fewest >= 0 && edits > fewest) continue;
        if (edits < fewest || fewest < 0) used = 0;
        fewest = edits;
        size_t length = strlen(word);
        char *grown = realloc(best, used + length + 2);
        if (grown == NULL) return 1;
        best = grown;
        used += (size_t)sprintf(best + used, "%s\n", word);
    }
    if (fewest < 0) return 1;
    printf("%d\n%s", fewest, best);
    return 0;
}
