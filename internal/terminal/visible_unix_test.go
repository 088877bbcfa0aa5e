// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logged returns the first line that a log writes to the screen of an output, which is read from another file.
func logged(t *testing.T, encoder zapcore.Encoder, output, read *os.File, text string) string {
	t.Helper()
	screen := NewScreen(output, output)
	defer screen.Close()
	zap.New(zapcore.NewCore(encoder, screen.LogWriter(), zap.DebugLevel)).Info("got "+text, zap.String("reason", text))
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// What servers and models write into a log cannot control a terminal, move the cursor or change the direction of a
// text. The colours of the level stay, and a file has the text as it is.
func TestLogsControlNoTerminal(t *testing.T) {
	colours := zap.NewDevelopmentEncoderConfig()
	colours.TimeKey, colours.EncodeLevel = "", zapcore.CapitalColorLevelEncoder
	for name, test := range map[string]struct {
		encoder zapcore.Encoder
		want    string
	}{
		"lines": {zapcore.NewConsoleEncoder(colours), "\x1b[34mINFO\x1b[0m\tgot <U+009B>2J<U+202E><U+007F>\t{\"reason\": \"<U+009B>2J<U+202E><U+007F>\"}"},
		"JSON":  {zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}), `{"msg":"got \u009b2J\u202e\u007f","reason":"\u009b2J\u202e\u007f"}`},
	} {
		outer, inner, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		defer inner.Close()
		const text = "\u009b2J\u202e\x7f"
		if got := strings.TrimRight(logged(t, test.encoder, inner, outer, text), "\r\n"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		file := output(t)
		read, err := os.Open(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		if got := logged(t, test.encoder, file, read, text); strings.Count(got, text) != 2 {
			t.Errorf("%s: the file has %q", name, got)
		}
	}
}
