// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/raced"
)

// decode returns the IDs that Decode yields, and its error.
func decode(r io.Reader) (ids []string, err error) {
	for c, err := range canister.Decode(r) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, c.Header().ID)
	}
	return ids, nil
}

func TestDecode(t *testing.T) {
	const a, b = `{"kind":"user","id":"a"}`, `{"kind":"user","id":"b"}`
	for _, test := range []struct {
		name, lines string
		want        []string
		err         string
	}{
		{"nothing", "", nil, ""},
		{"blank lines", "\n \t\n" + a + "\r\n\n" + b + "\n\n", []string{"a", "b"}, ""},
		{"no newline at the end", a + "\n" + b, []string{"a", "b"}, ""},
		{"torn at the end", a + "\n" + b[:10], []string{"a"}, "canister: line 2: the line is not one JSON object: unexpected end"},
		{"unknown kind", "\n" + a + "\n\n{\"kind\":\"oracle\"}\n" + b, []string{"a"}, `canister: line 4: unknown kind "oracle"`},
		{
			"unknown content", a + "\n{\"kind\":\"user\",\"content\":[{\"type\":\"video\"}]}", []string{"a"},
			`canister: line 2: content: number 1: unknown content type "video"`,
		},
		{"newer version", "{\"v\":4,\"kind\":\"user\"}\n", nil, "canister: line 1: v: it was written by a newer program"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(test.lines), iotest.OneByteReader(strings.NewReader(test.lines))} {
				ids, err := decode(r)
				if !slices.Equal(ids, test.want) {
					t.Errorf("got %q, want %q", ids, test.want)
				}
				if (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("got error %v, want %q", err, test.err)
				}
			}
		})
	}
}

func TestDecodeStopsWhenTheLoopIsLeft(t *testing.T) {
	lines := strings.Repeat("{\"kind\":\"user\"}\n", 3)
	count := 0
	for range canister.Decode(strings.NewReader(lines)) {
		count++
		break
	}
	if count != 1 {
		t.Errorf("%d canisters after break", count)
	}
}

func TestDecodeOfAReaderThatFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	r := io.MultiReader(strings.NewReader("{\"kind\":\"user\",\"id\":\"a\"}\n{\"kind\""), iotest.ErrReader(broken))
	ids, err := decode(r)
	if !slices.Equal(ids, []string{"a"}) || !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %q, %v", ids, err)
	}
}

// endless is a line that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestDecodeBoundsTheLine(t *testing.T) {
	source := &endless{}
	_, err := decode(source)
	if err == nil || !strings.Contains(err.Error(), "line 1: the line is longer than 67108864 bytes") {
		t.Errorf("got %v", err)
	}
	if source.read > canister.MaxLine+1<<20 {
		t.Errorf("%d bytes were read for it", source.read)
	}
}

func TestEncodeBoundsTheLine(t *testing.T) {
	if raced.Enabled {
		t.Skip("64 MB take long under the race detector; .ci/run runs it without")
	}
	// Mostly base64, which is quick to write.
	content := []canister.Content{canister.AudioContent{Data: make([]byte, canister.MaxLine/4*3-300)}}
	line, err := canister.Marshal(canister.User{Head: canister.Head{ID: "x"}, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("x", 1+canister.MaxLine-len(line))
	var lines bytes.Buffer
	if err := canister.Encode(&lines, canister.User{Head: canister.Head{ID: id}, Content: content}); err != nil || lines.Len() != canister.MaxLine+1 {
		t.Fatalf("the longest line: %d bytes, %v", lines.Len(), err)
	}
	if ids, err := decode(&lines); err != nil || len(ids) != 1 {
		t.Errorf("the longest line does not come back: %v", err)
	}
	lines.Reset()
	err = canister.Encode(&lines, canister.User{}, canister.User{Head: canister.Head{ID: id + "x"}, Content: content})
	if err == nil || !strings.Contains(err.Error(), "canister: number 2: the line has 67108865 bytes") {
		t.Errorf("got %v", err)
	}
	if got := lines.String(); got != "{\"kind\":\"user\"}\n" {
		t.Errorf("%d bytes were written", len(got))
	}
}

func TestEncodeErrors(t *testing.T) {
	var lines bytes.Buffer
	err := canister.Encode(&lines, canister.User{}, nil, canister.User{})
	if err == nil || !strings.Contains(err.Error(), "number 2: <nil>") || lines.String() != "{\"kind\":\"user\"}\n" {
		t.Errorf("got %q, %v", lines.String(), err)
	}
	full := errors.New("the disk is full")
	reader, writer := io.Pipe()
	reader.CloseWithError(full)
	if err := canister.Encode(writer, canister.User{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := canister.Encode(writer); err != nil {
		t.Errorf("nothing to write, and yet %v", err)
	}
}

func TestEncodeOfALongHistory(t *testing.T) {
	history := slices.Repeat(golden(), 200)
	var whole, single bytes.Buffer
	if err := canister.Encode(&whole, history...); err != nil {
		t.Fatal(err)
	}
	for _, c := range history {
		if err := canister.Encode(&single, c); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(whole.Bytes(), single.Bytes()) {
		t.Error("a history and its canisters one after another give different bytes")
	}
	if ids, err := decode(&whole); err != nil || len(ids) != len(history) {
		t.Errorf("%d of %d come back, %v", len(ids), len(history), err)
	}
}
