// SPDX-License-Identifier: Apache-2.0

package engine

// InHand returns how many conversations an engine knows of at the moment: those
// with which something is done, and those that have an alarm.
func (l *Local) InHand() (talks, alarms int) {
	l.scheduler.mu.Lock()
	defer l.scheduler.mu.Unlock()
	l.checks.mu.Lock()
	defer l.checks.mu.Unlock()
	return len(l.scheduler.slots), len(l.checks.byConversation)
}
