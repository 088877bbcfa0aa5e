// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Each piece beside an ellipsis is the longest one of all forms.
func TestPiecesAreTheLongest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		return strings.Repeat("ab", random.IntN(3)) + fmt.Sprintf("%b", random.IntN(1<<random.IntN(most)+1))
	}
	found := 0
	for range 3000 {
		c := newCleaner(least, []string{word(12) + "-1", word(16) + "-22", word(20) + "0000000"})
		for range 5 {
			before, after := word(16), word(16)
			if random.IntN(2) == 0 && c != nil {
				form := c.forms[random.IntN(len(c.forms))]
				before, after = before+form[:random.IntN(len(form))], form[random.IntN(len(form)):]+after
			}
			text := before + ellipsis + after
			if c == nil || c.whole.Replace(text) != text {
				continue
			}
			head, tail := 0, 0
			for _, form := range c.forms {
				for n := leastPiece; n < len(form); n++ {
					if strings.HasSuffix(before, form[:n]) {
						head = max(head, n)
					}
					if strings.HasPrefix(after, form[len(form)-n:]) {
						tail = max(tail, n)
					}
				}
			}
			want := before + ellipsis + after
			if head > 0 {
				want, found = before[:len(before)-head]+Mark+ellipsis+after, found+1
			}
			if tail > 0 {
				want = strings.TrimSuffix(want, after) + Mark + after[tail:]
			}
			if got := c.text(text); got != want {
				t.Fatalf("of %q, %q becomes %q, want %q", c.forms, text, got, want)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d pieces were found", found)
	}
}

// Many ellipses are cheap, also with many long secrets.
func TestPiecesOfManyLongSecrets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	g := NewGrowing()
	var secrets []string
	for range maxFormer {
		token := []byte("eyJhbGciOi")
		for range 1500 {
			token = append(token, "abcdefghijklmnopqrstuvwxyz0123456789+&<"[random.IntN(39)])
		}
		secrets = append(secrets, string(token))
	}
	g.Add(secrets...)
	first := secrets[0]
	texts := map[string]string{
		strings.Repeat(ellipsis, 5000):                            strings.Repeat(ellipsis, 5000),
		strings.Repeat("eyJ "+ellipsis, 2300):                     strings.Repeat("eyJ "+ellipsis, 2300),
		strings.Repeat(first[20:1400]+ellipsis, 10):               strings.Repeat(first[20:1400]+ellipsis, 10),
		strings.Repeat(first[:1400]+ellipsis+first[1400:]+" ", 9): strings.Repeat(Mark+ellipsis+Mark+" ", 9),
	}
	began := time.Now()
	for text, want := range texts {
		if got := g.Text(text); got != want {
			t.Errorf("%.40q becomes %.100q", text, got)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	} else {
		t.Logf("it took %v", took)
	}
}
