// Package alert follows the incidents of the topics that a server owns, and sends notifications of
// them. What people were notified of stands in the topics' ledgers, so that another server goes on.
package alert
