// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// streamed passes a text through a stream in random pieces.
func streamed(random *rand.Rand, text string, clean PartFunc) string {
	var s Stream
	var got strings.Builder
	for most := 1 + random.IntN(12); text != ""; {
		n := min(1+random.IntN(most), len(text))
		got.WriteString(s.Next(text[:n], clean))
		text = text[n:]
	}
	return got.String() + s.Rest(clean)
}

// Whatever the secrets and the pieces are, the text is the same as in one piece.
func TestStreamIsTheCleanedText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := func(alphabet []string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 20000 {
		alphabet := [][]string{{"a", "b"}, {"a", "b", "c", " "}, {"a", "€", "😀", "東", "é"}, {"a", "\"", "/", "\n", "+"}, {"sk-", "0123", "x"}}[random.IntN(5)]
		var secrets []string
		for range 1 + random.IntN(3) {
			secrets = append(secrets, words(alphabet, 4+random.IntN(12)))
		}
		if random.IntN(2) == 0 {
			secrets = append(secrets, secrets[0]+words(alphabet, 4))
		}
		g := NewGrowing(secrets...)
		var text strings.Builder
		for range random.IntN(6) {
			secret := secrets[random.IntN(len(secrets))]
			text.WriteString([]string{
				secret, secret[:random.IntN(len(secret))] + ellipsis, ellipsis + secret[random.IntN(len(secret)):],
				words(alphabet, 5), ellipsis,
			}[random.IntN(5)])
		}
		text.WriteString("!")
		if got, want := streamed(random, text.String(), g.Part), g.Text(text.String()); got != want {
			t.Fatalf("the secrets are %q, and of %q remains\n%q, want\n%q", secrets, text.String(), got, want)
		}
	}
}

// Secrets of many characters are not shown either, with whatever is in them, and before
// whatever ends an answer.
func TestStreamShowsNoPartOfASecret(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, secret := range []string{
		"sk-0123456789abcdef", "correct horse battery", "pa€ssw0rd-1", "😀😀-0123", "東京-0123456", "half…and half",
		strings.Repeat("0123456789abcdef ", 600),
	} {
		secret = strings.TrimSpace(secret)
		g := NewGrowing(secret)
		before := strings.Repeat("x", 8<<10) + "\n"
		for range 20 {
			if got := streamed(random, before+secret+secret+", "+secret, g.Part); got != before+Mark+Mark+", "+Mark {
				t.Errorf("%.30q: of the text remains %.200q", secret, strings.TrimPrefix(got, before))
			}
			cut := leastPiece + random.IntN(len(secret)-leastPiece)
			if got := streamed(random, before+secret[:cut], g.Part); got != before+Mark {
				t.Errorf("%.30q is cut after %d bytes: of the text remains %.200q", secret, cut, strings.TrimPrefix(got, before))
			}
		}
		if got := streamed(random, secret[:leastPiece-1], g.Part); got != secret[:leastPiece-1] {
			t.Errorf("%.30q: a few bytes become %q", secret, got)
		}
	}
}

// A run of ellipses is passed on, and is cheap.
func TestStreamOfEllipses(t *testing.T) {
	g := NewGrowing("sk-0123456789abcdef")
	for _, piece := range []string{ellipsis, " . " + ellipsis} {
		var s Stream
		var got strings.Builder
		for range 20000 { // it took minutes for 4,000
			got.WriteString(s.Next(piece, g.Part))
			if len(s.held) > 2*len(piece) {
				t.Fatalf("%d bytes are held", len(s.held))
			}
		}
		if got.WriteString(s.Rest(g.Part)); got.String() != strings.Repeat(piece, 20000) {
			t.Error("the text is another one")
		}
	}
}

// Text that is not the beginning of a secret is passed on at once.
func TestStreamHoldsBackOnlyBeginnings(t *testing.T) {
	g := NewGrowing("sk-0123456789abcdef")
	var s Stream
	var got []string
	for _, piece := range []string{"The", " key", " is s", "k-01", "2 é"[:3], "\xa9", "… not", " sk"} {
		got = append(got, s.Next(piece, g.Part))
	}
	if got = append(got, s.Rest(g.Part), s.Rest(g.Part)); !slices.Equal(got, []string{"The", " key", " is ", "", "sk-012 ", "é", "… not", " ", "sk", ""}) {
		t.Errorf("the pieces are %q", got)
	}
	for what, clean := range map[string]PartFunc{"no function": nil, "no secrets": NewGrowing().Part} {
		if got := s.Next("as it", clean) + s.Rest(clean); got != "as it" {
			t.Errorf("with %s: %q", what, got)
		}
	}
}
