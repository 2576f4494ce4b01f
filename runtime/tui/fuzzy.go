package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// score says how well a text answers a pattern of letters in that order; the less,
// the better. Ok is false if they are not all in it. A pattern without capitals does
// not mind them.
func score(pattern, text string) (n int, ok bool) {
	if pattern == strings.ToLower(pattern) {
		text = strings.ToLower(text)
	}
	if i := strings.Index(text, pattern); i >= 0 {
		n = i
		if i > 0 && boundary(text, i) {
			n = 1 // the beginning of a word
		}
		return n*4 + len(text) - len(pattern), true
	}
	at, gaps := 0, 0
	for _, r := range pattern {
		i := strings.IndexRune(text[at:], r)
		if i < 0 {
			return 0, false
		}
		if i > 0 && !boundary(text, at+i) {
			gaps += 2
		}
		gaps += min(i, 10)
		at += i + utf8.RuneLen(r)
	}
	return 1000 + gaps*8 + len(text), true
}

// boundary reports whether a word begins at i.
func boundary(text string, i int) bool {
	if i == 0 {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	return !unicode.IsLetter(before) && !unicode.IsDigit(before)
}

// best returns those of n texts that answer the pattern, the best first, by their
// numbers.
func best(pattern string, n int, text func(int) string) []int {
	type hit struct{ i, score int }
	var hits []hit
	words := strings.Fields(pattern)
	for i := range n {
		total, all := 0, true
		for _, w := range words {
			s, ok := score(w, text(i))
			if !ok {
				all = false
				break
			}
			total += s
		}
		if all {
			hits = append(hits, hit{i, total})
		}
	}
	if len(words) > 0 {
		slices.SortStableFunc(hits, func(a, b hit) int { return a.score - b.score })
	}
	list := make([]int, len(hits))
	for i, h := range hits {
		list[i] = h.i
	}
	return list
}

// nearest returns the word that was probably meant, or "".
func nearest(name string, words []string) string {
	found, least := "", 3
	for _, w := range words {
		if d := distance(name, w); d < least && d < max(len(name), 2) {
			found, least = w, d
		}
	}
	if found != "" {
		return found
	}
	if list := best(name, len(words), func(i int) string { return words[i] }); name != "" && len(list) > 0 {
		return words[list[0]]
	}
	return ""
}

// distance counts the letters that have to be put in, taken out or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			last, row[j+1] = row[j+1], min(last+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
