// SPDX-License-Identifier: Apache-2.0

//go:build noconsole

package gateway

import "context"

// HasConsole reports whether this program has the console.
const HasConsole = false

func (s *server) offerConsole(context.Context, *servers) (opened func(string), stop func(), err error) {
	return func(string) {}, func() {}, nil
}
