// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"fmt"

	"github.com/consort-go/consort/internal/glob"
)

// filter decides by name which tools are offered.
type filter struct{ allow, deny []string }

// refuses returns why the tool is not offered, or the empty string if it is.
func (f filter) refuses(tool string) string {
	for _, pattern := range f.deny {
		if glob.Match(pattern, tool) {
			return fmt.Sprintf("it is denied by %q", pattern)
		}
	}
	if len(f.allow) == 0 {
		return ""
	}
	for _, pattern := range f.allow {
		if glob.Match(pattern, tool) {
			return ""
		}
	}
	return "it is not among those allowed"
}
