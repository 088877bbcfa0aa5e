// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package subprocess

// Unread is not known on systems whose pipes do not report it, or not to the writer.
func (p *Process) Unread() (count int, known bool) { return 0, false }
