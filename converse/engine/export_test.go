// SPDX-License-Identifier: Apache-2.0

package engine

// InHand returns how many conversations an engine knows of at the moment: those
// with which something is done, and those that have an alarm.
func (l *Local) InHand() (talks, alarms int) {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	l.clock.mu.Lock()
	defer l.clock.mu.Unlock()
	return len(l.desk.talks), len(l.clock.of)
}
