// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/consort-go/consort/internal/display"
)

// ShortPath abbreviates the home directory in a path.
func ShortPath(path string) string {
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rest, inside := strings.CutPrefix(path, home+string(filepath.Separator)); inside {
			path = filepath.Join("~", rest)
		}
	}
	return display.Line(path)
}
