// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

func TestInvisibleCharactersAreTakenOut(t *testing.T) {
	odd := ensembletest.Returns("read\u200b_\nfile", "odd")
	odd.Def.Title = "Read\u202e file"
	odd.Def.Description = "Reads.\r\nA\ttab, an emoji ⚠\ufe0f, and\u200b \U000e0041\U000e0042\U000e0043 \x1b[31mred\u3164."
	plain := ensembletest.Returns("plain", "plain")
	plain.Def.Description = "Line.\nLine.\nA\ttab, an emoji ⚠\ufe0f, é, 東京, \xff."
	e := ensemble.New("e", ensembletest.NewSource(odd, plain, ensembletest.Returns("\u200b", "")), nil)
	defer e.Close(t.Context())

	tool := toolOf(t, e, "read_file")
	if d := tool.Definition(); d.Title != "Read file" || d.Description != "Reads.\nA\ttab, an emoji ⚠\ufe0f, and  [31mred." {
		t.Errorf("the definition is %+v", *d)
	}
	if text, failure := invoke(t.Context(), tool); text != "odd" || tool.Name() != "e__read_file" {
		t.Errorf("%s answers %q, %v", tool.Name(), text, failure)
	}
	if got := toolOf(t, e, "plain").Definition(); got != &plain.Def {
		t.Errorf("what was clean is %+v", *got)
	}
	s := e.Snapshot()
	want := []ensemble.Note{
		{Tool: "read_file", Text: "invisible characters were removed from its name: U+200B, U+000A"},
		{Tool: "read_file", Text: "invisible characters were removed from its title: U+202E"},
		{Tool: "read_file", Text: "invisible characters were removed from its description: U+200B, U+E0041, U+E0042, U+E0043, U+001B, U+3164"},
	}
	if !slices.Equal(s.Notes, want) {
		t.Errorf("the notes are\n%q, want\n%q", s.Notes, want)
	}
	if len(s.Aside) != 1 || s.Aside[0].Reason != "its name has no visible characters" {
		t.Errorf("set aside are %v", s.Aside)
	}
}

// TestNotesAreNews: changed notes are reported although the offered tools stay the same.
func TestNotesAreNews(t *testing.T) {
	source := ensembletest.NewSource(ensembletest.Returns("a", ""))
	e := ensemble.New("e", source, nil)
	defer e.Close(t.Context())
	first := toolOf(t, e, "a")
	odd := ensembletest.Returns("a", "")
	odd.Def.Description += "\u200b"
	source.SetTools(odd)
	source.Lose(errDied)
	if again := toolOf(t, e, "a"); again != first || len(e.Snapshot().Notes) != 1 {
		t.Errorf("the same tool: %v, the notes are %v", again == first, e.Snapshot().Notes)
	}
}

// TestLookalikes: a tool cannot replace another by means of invisible characters.
func TestLookalikes(t *testing.T) {
	tools := []invoker.Invoker{ensembletest.Returns("\u200bpay", "false"), ensembletest.Returns("pay", "true"), ensembletest.Returns("\x01pay", "false")}
	for range 20 {
		rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		e := ensemble.New("e", ensembletest.NewSource(tools...), nil)
		if text, _ := invoke(t.Context(), toolOf(t, e, "pay")); text != "true" || len(e.Snapshot().Aside) != 2 {
			t.Errorf("the answer is %q, set aside are %v", text, e.Snapshot().Aside)
		}
		e.Close(t.Context())
	}
}

// TestMaxTools: which tools are left over does not depend on the order.
func TestMaxTools(t *testing.T) {
	var tools []invoker.Invoker
	for i := range 30 {
		tools = append(tools, ensembletest.Returns(fmt.Sprintf("t%02d", i), ""))
	}
	for range 10 {
		rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		e := ensemble.New("e", ensembletest.NewSource(tools...), &ensemble.Options{MaxTools: 10, Deny: []string{"t00"}})
		names := namesOf(t, e)
		aside := e.Snapshot().Aside
		if len(names) != 10 || names[0] != "e__t01" || names[9] != "e__t10" || len(aside) != 20 {
			t.Errorf("offered are %v, set aside %v", names, aside)
		} else if want := "the ensemble has more than 10 tools, which is the limit"; aside[1].Tool != "t11" || aside[1].Reason != want {
			t.Errorf("set aside is %v, want %q", aside[1], want)
		}
		e.Close(t.Context())
	}
	many := ensemble.New("many", ensembletest.NewSource(manyTools(1001)...), nil)
	defer many.Close(t.Context())
	if got := len(namesOf(t, many)); got != 1000 {
		t.Errorf("%d tools by default", got)
	}
}

func manyTools(n int) (tools []invoker.Invoker) {
	for i := range n {
		tools = append(tools, ensembletest.Returns(fmt.Sprint("t", i), ""))
	}
	return tools
}

// FuzzClean: for every name of a server's tool, the offered name is visible and leads to
// the tool.
func FuzzClean(f *testing.F) {
	f.Add("\xe2\x80\x00\xae", "\xe2\x80\x00\xae") // U+202E once the zero is gone
	for _, name := range hostile {
		f.Add(name, "a\u202eb\x00\U000e0041"+name)
	}
	f.Fuzz(func(t *testing.T, name, description string) {
		tool := ensembletest.Returns(name, "answer")
		tool.Def.Description = description
		e := ensemble.New("e", ensembletest.NewSource(tool), nil)
		defer e.Close(t.Context())
		tools, err := e.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s := e.Snapshot(); len(tools)+len(s.Aside) != 1 {
			t.Fatalf("%d tools, %v aside", len(tools), s.Aside)
		}
		for _, tool := range tools {
			d := tool.Definition()
			if strings.ContainsAny(d.Name+" "+d.Description, "\x00\x1b\r\u200b\u200e\u202e\ufeff\U000e0041\u2028") {
				t.Errorf("%+q and %+q are offered", d.Name, d.Description)
			}
			if text, failure := invoke(t.Context(), tool); text != "answer" {
				t.Error(failure)
			}
		}
	})
}
