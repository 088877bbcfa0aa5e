// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
)

// picture returns a PNG: the left half is red and the right half blue.
func picture(t *testing.T, width, height int) canister.ImageContent {
	t.Helper()
	drawn := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			shade := color.RGBA{R: 255, A: 255}
			if x >= width/2 {
				shade = color.RGBA{B: 255, A: 255}
			}
			drawn.SetRGBA(x, y, shade)
		}
	}
	var data bytes.Buffer
	if err := png.Encode(&data, drawn); err != nil {
		t.Fatal(err)
	}
	return canister.ImageContent{Data: data.Bytes(), MIME: "image/png"}
}

func TestImage(t *testing.T) {
	content := picture(t, 320, 160)
	sequence, rows := Image(Style{Images: Kitty}, content)
	if rows != 10 || !strings.HasPrefix(sequence, "\x1b_Ga=T,f=100,q=2,c=40,r=10,m=") || !strings.HasSuffix(sequence, "\x1b\\") {
		t.Errorf("%d rows, %.80q", rows, sequence)
	}
	var sent strings.Builder
	for _, piece := range regexp.MustCompile("\x1b_G[^;]*;([^\x1b]*)\x1b\\\\").FindAllStringSubmatch(sequence, -1) {
		if len(piece[1]) > 4096 {
			t.Errorf("a piece has %d bytes", len(piece[1]))
		}
		sent.WriteString(piece[1])
	}
	data, err := base64.StdEncoding.DecodeString(sent.String())
	if err != nil {
		t.Fatal(err)
	}
	if back, err := png.Decode(bytes.NewReader(data)); err != nil || back.Bounds().Dx() != 320 {
		t.Errorf("the terminal gets another picture: %v", err)
	}
	if sequence, rows := Image(Style{Images: ITerm2}, content); rows != 10 || !strings.HasPrefix(sequence, "\x1b]1337;File=inline=1;size=") ||
		!strings.HasSuffix(sequence, "\a") {
		t.Errorf("%d rows, %.80q", rows, sequence)
	}
}

// The first band of sixels has a run of red and a run of blue.
func TestSixel(t *testing.T) {
	sequence, rows := Image(Style{Images: Sixel}, picture(t, 80, 48))
	if rows != 3 || !strings.HasPrefix(sequence, "\x1bPq\"1;1;80;48#0;2;0;0;0") || !strings.HasSuffix(sequence, "-\x1b\\") {
		t.Fatalf("%d rows, %.80q", rows, sequence)
	}
	for _, part := range []string{"!40~!40?$", "!40?!40~$"} {
		if strings.Count(sequence, part) != 8 {
			t.Errorf("%q is there %d times, want 8", part, strings.Count(sequence, part))
		}
	}
}

// An image that cannot be shown yields no sequence, so that it is described.
func TestImagesThatAreDescribed(t *testing.T) {
	good := picture(t, 10, 10)
	huge := append([]byte(nil), good.Data...)
	copy(huge[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65536 by 65536 pixels
	for name, test := range map[string]struct {
		format  ImageFormat
		content canister.ImageContent
	}{
		"no images":    {NoImages, good},
		"no data":      {Kitty, canister.ImageContent{URL: "https://example.com/a.png"}},
		"not an image": {ITerm2, canister.ImageContent{Data: []byte("\x1b[2J"), MIME: "image/png"}},
		"cut":          {Sixel, canister.ImageContent{Data: good.Data[:len(good.Data)/2], MIME: "image/png"}},
		"huge":         {Kitty, canister.ImageContent{Data: huge}},
		"many bytes":   {Kitty, canister.ImageContent{Data: make([]byte, maxImageBytes+1)}},
	} {
		if sequence, rows := Image(Style{Images: test.format}, test.content); sequence != "" || rows != 0 {
			t.Errorf("%s: %d rows, %.80q", name, rows, sequence)
		}
	}
	if sequence, rows := Image(Style{Images: Kitty, Width: 40}, picture(t, 1600, 1200)); rows > maxImageRows || !strings.Contains(sequence, "c=40,r=15") {
		t.Errorf("a large image has %d rows, %.60q", rows, sequence)
	}
	if _, rows := Image(Style{Images: Kitty}, picture(t, 1, 2000)); rows != maxImageRows {
		t.Errorf("a high image has %d rows", rows)
	}
}

func TestStyleFor(t *testing.T) {
	for _, test := range []struct {
		env  string
		want Style
	}{
		{"TERM=xterm-256color", Style{Color: true}},
		{"TERM=dumb LANG=en_US.UTF-8", Style{}},
		{"TERM=xterm NO_COLOR=1", Style{}},
		{"TERM=xterm LANG=C", Style{Color: true, ASCII: true}},
		{"TERM=xterm LC_ALL=de_DE.utf8 LANG=C", Style{Color: true}},
		{"TERM=rxvt COLORFGBG=0;15", Style{Color: true, Light: true}},
		{"TERM=rxvt COLORFGBG=15;default;0", Style{Color: true}},
		{"TERM=xterm-kitty", Style{Color: true, Links: true, Images: Kitty}},
		{"TERM=xterm-256color TERM_PROGRAM=iTerm.app", Style{Color: true, Links: true, Images: ITerm2}},
		{"TERM=foot", Style{Color: true, Links: true, Images: Sixel}},
		{"TERM=xterm-256color VTE_VERSION=7600", Style{Color: true, Links: true}},
		{"TERM=tmux-256color TMUX=/tmp/x KITTY_WINDOW_ID=1", Style{Color: true}},
	} {
		env := map[string]string{}
		for _, one := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(one, "=")
			env[name] = value
		}
		if got := StyleFor(func(name string) string { return env[name] }, 0); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.env, got, test.want)
		}
	}
}
