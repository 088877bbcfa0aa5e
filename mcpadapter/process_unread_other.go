// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mcpadapter

// unread is not known where pipes do not say it, or do not say it to their
// writers.
func (p *process) unread() (count int, known bool) { return 0, false }
