package testworld

import (
	"regexp"
	"strconv"
	"strings"
)

// sequence is a text, a line break, or what tells a terminal something (ECMA-48).
var sequence = regexp.MustCompile("\x1b\\[\\??([0-9]*)[;0-9]*([A-Za-z])|\r|\n|[^\x1b\r\n]+")

// Glass computes what a terminal of a given width shows of a text, line by line, as far as
// feedscale uses terminals: it moves up, erases, and begins lines. Colors are left out.
func Glass(written string, width int) []string {
	lines, row, column := []string{""}, 0, 0
	put := func(text string) {
		for _, r := range text {
			if column == width {
				row, column = row+1, 0
			}
			for len(lines) <= row {
				lines = append(lines, "")
			}
			line := []rune(lines[row])
			for len(line) <= column {
				line = append(line, ' ')
			}
			line[column] = r
			lines[row], column = string(line), column+1
		}
	}
	for _, part := range sequence.FindAllStringSubmatch(written, -1) {
		switch n, _ := strconv.Atoi(part[1]); {
		case part[0] == "\r":
			column = 0
		case part[0] == "\n":
			if row++; row == len(lines) {
				lines = append(lines, "")
			}
		case part[2] == "":
			put(part[0])
		case part[2] == "A":
			row = max(0, row-max(1, n))
		case part[2] == "K":
			lines[row] = ""
		case part[2] == "J":
			lines = lines[:row+1]
			lines[row] = string([]rune(lines[row])[:min(column, len([]rune(lines[row])))])
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}
