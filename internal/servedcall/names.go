// SPDX-License-Identifier: Apache-2.0

package servedcall

import "github.com/consort-go/consort/ensemble"

// Names calls add for each tool, with the name that clients use: first for a server's own tools,
// which have only one name, then for the tools of its roster. A tool of the roster has its own name if
// that is allowed and no other tool of the roster has it, as its own or as the name that models
// see; otherwise it has the name that models see. allowed is called between the calls of add.
func Names(own, roster []*ensemble.Tool, allowed func(name string) bool, add func(t *ensemble.Tool, name string)) {
	for _, t := range own {
		add(t, t.Definition().Name)
	}
	named := make(map[string]int)
	for _, t := range roster {
		named[t.Definition().Name]++
		named[t.Name()]++
	}
	for _, t := range roster {
		name := t.Name()
		if short := t.Definition().Name; named[short] == 1 && allowed(short) {
			name = short
		}
		add(t, name)
	}
}
