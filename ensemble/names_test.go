// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
)

var legal = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// TestNameForGolden pins the names down: histories, prompt caches and rules
// hold on to them from one start to the next.
func TestNameForGolden(t *testing.T) {
	long := strings.Repeat("long", 50)
	tests := []struct{ ensemble, tool, want string }{
		{"files", "read_file", "files__read_file"},
		{"mcp-weather", "get_weather", "mcp-weather__get_weather"},
		{"a", "_b", "a___b"},
		{"a", "b__c", "a__b__c"},
		{"_a", "b", "_a__b"},
		{"F", "R", "F__R"},
		{"a", "b-xabcdefghijk", "a__b-xabcdefghijk"},
		{"a", strings.Repeat("t", 61), "a__" + strings.Repeat("t", 61)},

		{"a_", "b", "a__b-xhv4w6k4r4eqx"},
		{"a__b", "c", "a_b__c-xc6qi4iiru4on"},
		{"files", "read.file", "files__read_file-xqlrempdr4awr"},
		{"files", "read/file", "files__read_file-xzq546dvwmke3"},
		{"a", "b-xabcdefghijkl", "a__b-xabcdefghijkl-x5sb6ljmkt67k"},
		{"a", strings.Repeat("t", 62), "a__" + strings.Repeat("t", 47) + "-xfjgxf3hcyusr"},
		{long, long, "longlonglonglonglonglong__longlonglonglonglonglong-xtf5hmislzm74"},
		{long, "t", long[:47] + "__t-xccq7ha32d2ah"},
		{"東京", "天気", "ensemble__tool-xqdpnwknk264c"},
		{"", "", "ensemble__tool-xv5kxb5nbqefx"},
	}
	for _, test := range tests {
		if got := ensemble.NameFor(test.ensemble, test.tool); got != test.want {
			t.Errorf("NameFor(%q, %q) = %q, want %q", test.ensemble, test.tool, got, test.want)
		}
	}
}

// hostile are parts of names that are hard to keep apart.
var hostile = []string{
	"", "_", "__", "___", "a", "A", "b", "a_", "_a", "a__", "__a", "a__b", "a_b", "a-b", "a.b", "a/b", "a b", "a:b",
	"a__b__c", "b__c", "c", "-", "-x", "a-xabcdefghijkl", "-xabcdefghijkl", "ensemble", "tool", "\u00e4", "a\u0308", "東京", "🎻",
	"\xff", "\xfe", "a\xff", "a\x00", "a\n", "\u200b", "\u202ea", strings.Repeat("n", 59), strings.Repeat("n", 60),
	strings.Repeat("n", 61), strings.Repeat("n", 62), strings.Repeat("n", 63), strings.Repeat("n", 64), strings.Repeat("n", 200),
	strings.Repeat("n", 199) + "m", strings.Repeat(".", 200), strings.Repeat("_", 64), strings.Repeat("東", 200),
	"ensemble__tool-x", "files__read_file", "read_file", "read.file", "Read_File", "read-file",
}

// TestNameForHostile gives every pair of hostile parts a name, and then every
// name to the codec again, as a name that a server might choose.
func TestNameForHostile(t *testing.T) {
	seen := make(map[string]string)
	check := func(e, tool string) string {
		name, pair := ensemble.NameFor(e, tool), fmt.Sprintf("(%q, %q)", e, tool)
		if !legal.MatchString(name) {
			t.Fatalf("the name of %s is %q, which is not legal", pair, name)
		}
		if other, ok := seen[name]; ok && other != pair {
			t.Fatalf("%s and %s have the same name %q", pair, other, name)
		}
		seen[name] = pair
		return name
	}
	for _, e := range hostile {
		for _, tool := range hostile {
			name := check(e, tool)
			if scope, own, ok := strings.Cut(name, "__"); ok {
				check(scope, own)
			}
			check("a", name)
			check(name, "a")
		}
	}
}

// TestNameForRandom tries pairs over a small alphabet, which makes collisions likely.
func TestNameForRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	part := func() string {
		b := make([]byte, random.IntN(6))
		for i := range b {
			b[i] = "ab__--x."[random.IntN(8)]
		}
		return string(b)
	}
	seen := make(map[string][2]string)
	for range 200_000 {
		pair := [2]string{part(), part()}
		name := ensemble.NameFor(pair[0], pair[1])
		if other, ok := seen[name]; ok && other != pair {
			t.Fatalf("%q and %q have the same name %q", pair, other, name)
		}
		seen[name] = pair
	}
}

func FuzzNameFor(f *testing.F) {
	f.Add("files", "read", "files__", "read")
	f.Add("a_", "b", "a", "_b")
	f.Add("a", "b.c", "a", "b_c")
	f.Add("a", "b-xabcdefghijkl", "a", "b")
	f.Fuzz(func(t *testing.T, e1, t1, e2, t2 string) {
		a, b := ensemble.NameFor(e1, t1), ensemble.NameFor(e2, t2)
		if !legal.MatchString(a) {
			t.Errorf("NameFor(%q, %q) = %q, which is not legal", e1, t1, a)
		}
		if same := e1 == e2 && t1 == t2; same != (a == b) {
			t.Errorf("NameFor(%q, %q) = %q, NameFor(%q, %q) = %q", e1, t1, a, e2, t2, b)
		}
	})
}
