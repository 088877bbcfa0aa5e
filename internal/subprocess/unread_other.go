// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package subprocess

// unread is not known on systems whose pipes do not report it, or not to the writer.
func (p *Process) unread() (count int, known bool) { return 0, false }
