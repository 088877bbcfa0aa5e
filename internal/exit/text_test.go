// SPDX-License-Identifier: Apache-2.0

package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

type noCauses struct{ error }

func (noCauses) Unwrap() []error { return nil }

func TestText(t *testing.T) {
	printed := With(Tool, nil)
	for want, err := range map[string]error{
		"":                                    printed,
		"one":                                 With(Usage, errors.New("one\n")),
		"one\ntwo":                            errors.Join(errors.New("one"), printed, With(Usage, errors.New("two"))),
		"the turn: two (three)":               fmt.Errorf("the turn: %w (%w)", errors.New("two"), errors.New("three")),
		"without causes":                      noCauses{errors.New("without causes")},
		"of a server: <U+202E>":               errors.New("of a server: \u202e"),
		"stopped: context canceled\nand left": errors.Join(fmt.Errorf("stopped: %w", context.Canceled), errors.New("and left")),
	} {
		if got := Text(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
