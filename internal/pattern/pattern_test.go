// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/pattern"
)

func TestLargePatternsAreNotCompiled(t *testing.T) {
	for name, text := range map[string]string{
		"repetitions":           strings.Repeat("x{1000}", 3300),
		"optional repetitions":  strings.Repeat("x{0,1000}", 20),
		"nested repetitions":    "(?:(?:" + strings.Repeat("x", 1000) + "){10}){100}",
		"repeated alternatives": "(?:" + strings.Repeat("x|yz|", 10) + "c){1000}",
		"large classes":         strings.Repeat(`\pL`, 3000),
		"a long text":           strings.Repeat("x", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := pattern.Compile(text, pattern.MaxSize)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "larger than 10000 instructions") {
				t.Errorf("got %v", err)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 10<<20 {
				t.Errorf("it took %d MB", made>>20)
			}
		})
	}
}

func TestUsualPatternsAreCompiled(t *testing.T) {
	for text, example := range map[string]string{
		`^[\p{L}\p{N} _-]{1,255}$`:      "Ann 中",
		`^[\s\S]{0,1000}$`:              "a\nb",
		`^(?:[a-z0-9]{1,63}\.){1,8}de$`: "a.b.de",
		`^[\u4e00-\u9fff\/]+$`:          "中/",
		``:                              "x",
	} {
		p, err := pattern.Compile(text, pattern.MaxSize)
		if err != nil || !p.MatchString(example) {
			t.Errorf("%s: got %v, %v", text, p, err)
		}
	}
}

func TestStepsAreSizeTimesLength(t *testing.T) {
	p, err := pattern.Compile("(?:x?){900}y|(?:x?){900}z", pattern.MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ length, least, most int }{{10, 30, 200}, {1 << 20, 4_000_000, 20_000_000}, {0, 1, 1}} {
		if got := p.Steps(strings.Repeat("x", test.length)); got < test.least || got > test.most {
			t.Errorf("%d bytes take %d steps, want %d to %d", test.length, got, test.least, test.most)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	p, err := pattern.Compile("(?:x?){900}y|(?:x?){900}z", pattern.MaxSize)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("x", 4000)
	for b.Loop() {
		p.MatchString(text)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*p.Steps(text)), "ns/step")
}
