// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/rendering"
)

// Lines of texts and tables are wrapped in their columns, with their colours.
func TestLinesAreWrappedInColumns(t *testing.T) {
	for line, want := range map[string]string{
		"/new      begin a new words":                       "/new      begin a|          new words",
		"  a note that is indented":                         "  a note that is|  indented",
		"a text without columns":                            "a text without|columns",
		"  files__create_directory  Create a new directory": "  files__create_dire|  ctory|      Create a new|      directory",
		"1  user  hello  hello hello":                       "1  user  hello|         hello hello",
		"\x1b[2m/new      begin a new one\x1b[m":            "\x1b[2m/new      \x1b[m\x1b[2mbegin a\x1b[m|          \x1b[2mnew one\x1b[m",
		"short  and  narrow":                                "short  and  narrow",
	} {
		var paper transcript
		paper.add(line, 20)
		if got := strings.Join(paper.rows, "|"); got != want {
			t.Errorf("%q is %q, not %q", line, got, want)
		}
	}
}

// Rows with images leave the region that is redrawn, each by itself, and others stay.
func TestPicturesArePrinted(t *testing.T) {
	paper := transcript{rows: []string{"one", "two"}}
	paper.add("a picture", 80)
	paper.illustrate("<1>", 3)
	paper.add("another", 80)
	paper.illustrate("<2>", 30)
	paper.add("three", 80)
	var texts []string
	for {
		text, n := paper.next(12, 20)
		if n == 0 {
			break
		}
		texts = append(texts, text)
		paper.gone(printed(n))
	}
	want := []string{
		"one\ntwo\x1b[m",
		"a picture\x1b[m\n\n\n\n\x1b7\x1b[3A<1>\x1b8",
		"another\x1b[m", // it does not fit
	}
	if strings.Join(texts, "|") != strings.Join(want, "|") || len(paper.rows) != 1 || len(paper.pictures) > 0 {
		t.Errorf("printed were %q; left are %q, %v", texts, paper.rows, paper.pictures)
	}
	if text, n := paper.next(0, 20); text != "three\x1b[m" || n != 1 {
		t.Errorf("%q, %d", text, n)
	}
}

// The image of a result fits the window, and the view has only its description.
func TestImagesOfResults(t *testing.T) {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 400, 400))); err != nil {
		t.Fatal(err)
	}
	result := canister.Result{Content: []canister.Content{canister.ImageContent{Data: data.Bytes(), MIME: "image/png"}}}
	for _, size := range [][2]int{{40, 14}, {80, 24}, {120, 40}} {
		for _, format := range []rendering.ImageFormat{rendering.NoImages, rendering.Kitty, rendering.ITerm2} {
			d := newDesk(t, size[0], size[1])
			d.style.Images = format
			d.happens(converse.TurnStarted{})
			d.happens(converse.InvocationCompleted{Invocation: canister.Invocation{Head: canister.Head{ID: "1"}, Name: "paint"}, Result: result})
			d.harmless()
			d.shows("image/png")
			if n := len(d.paper.pictures); (n > 0) != (format != rendering.NoImages) {
				t.Fatalf("%v: %d images", format, n)
			}
			for _, p := range d.paper.pictures {
				if room := size[1] - 6; p.height > room || p.below(room+2) == "" {
					t.Errorf("%v: an image of %d rows in a window of %d", format, p.height, size[1])
				}
			}
		}
	}
	if (fold{call: &converse.InvocationCompleted{Result: result}}).size() < data.Len() {
		t.Error("images do not count for the size of a fold")
	}
}

// The rows after an image wait until it is drawn, so that it has room.
func TestRowsAfterAnImageWait(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.paper.add("a picture", 80)
	d.paper.illustrate("<1>", 12)
	for range 12 {
		d.happens(note{"later\n"})
	}
	if strings.Contains(d.view(), "later") {
		t.Error("they are shown")
	}
	if room := d.height - d.rows - 1; d.paper.pictures[0].below(room) == "" {
		t.Errorf("an image of 12 rows does not fit into %d", room)
	}
	d.Update(printed(1))
	d.shows("later")
}

// Text with a wide indentation fits the window, and does not become a column of characters.
func TestWideIndentation(t *testing.T) {
	for _, test := range []struct {
		line  string
		width int
	}{
		{strings.Repeat(" ", 60) + "hello world", 40},
		{strings.Repeat(" ", 30) + "hello, this is a longer text of some words", 40},
		{strings.Repeat(" ", 45) + "one column  and another one", 40},
		{strings.Repeat("\t", 12) + "\x1b[1mhello world\x1b[m", 40},
		{strings.Repeat(" ", 25) + "a word", 20},
	} {
		var paper transcript
		paper.add(test.line, test.width)
		said := strings.Join(strings.Fields(ansi.Strip(strings.Join(paper.rows, " "))), " ")
		if want := strings.Join(strings.Fields(ansi.Strip(test.line)), " "); len(paper.rows) > 5 || said != want {
			t.Errorf("%q is %q", test.line, paper.rows)
		}
		for _, row := range paper.rows {
			if columns(row) > test.width {
				t.Errorf("%d columns of %d: %q", columns(row), test.width, row)
			}
		}
	}
}
