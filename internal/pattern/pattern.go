// SPDX-License-Identifier: Apache-2.0

// Package pattern compiles the regular expressions in schemas. They come from servers
// and clients: a few of their bytes can stand for a program of many megabytes.
package pattern

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
)

// MaxSize is the maximum size of a pattern, in instructions of the compiled program.
const MaxSize = 10_000

// Pattern is a compiled regular expression.
type Pattern struct {
	*regexp.Regexp
	Size int // in instructions, as estimated
}

// Compile compiles a regular expression in the syntax of ECMA-262, which JSON Schema
// uses. The error says that Go does not have its syntax, such as lookahead, or that it
// is larger than most instructions.
func Compile(text string, most int) (*Pattern, error) {
	const class = 100 // the memory of a class such as \pL, which copies share
	if len(text)+class*(strings.Count(text, `\p`)+strings.Count(text, `\P`)) > most {
		return nil, tooLarge(most)
	}
	text = goSyntax(text)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(parsed)
	if size > int64(most) {
		return nil, tooLarge(most)
	}
	re, err := regexp.Compile(text)
	return &Pattern{re, int(size)}, err
}

func tooLarge(most int) error { return fmt.Errorf("it is larger than %d instructions", most) }

// Steps returns the cost of a match with text, which cannot be interrupted. A step is
// 512 instructions for one byte each: up to about ten microseconds.
func (p *Pattern) Steps(text string) int {
	return 1 + int(min(int64(len(text))*int64(p.Size)/512, math.MaxInt32-1))
}

// instructions returns the size of the program of an expression.
func instructions(re *syntax.Regexp) int64 {
	var size int64
	for _, sub := range re.Sub {
		size += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size = int64(len(re.Rune))
	case syntax.OpRepeat:
		// Copies; the last ones are optional, or the last one repeats.
		size = size*int64(max(1, re.Min, re.Max)) + int64(max(1, re.Max-re.Min))
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		size += 2
	case syntax.OpAlternate:
		size += int64(len(re.Sub))
	}
	return max(1, size)
}

// goSyntax rewrites the ECMA escape \u4e00 for a code unit as \x{4e00} for Go.
func goSyntax(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		b.WriteByte(pattern[i])
		if pattern[i] != '\\' || i+1 == len(pattern) {
			continue
		}
		i++
		if pattern[i] == 'u' && i+4 < len(pattern) {
			b.WriteString("x{" + pattern[i+1:i+5] + "}")
			i += 4
			continue
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}
