package monitoring

// deadLetters is the board about what redrive serve reports.
var deadLetters = Board{
	File: "dead-letters.json", UID: "siding-dead-letters", Title: "siding: dead letters",
	Description: "What is dead and why, whether it still grows, and what became of what was brought back. From redrive serve.",
	Variables:   []Variable{{"topic", "Dead-letter topic", "siding_dead_letters_unread", "messaging_destination_name"}},
	Rows: []Row{
		{"Now", []Panel{
			{"Open", "Letters that nobody has resolved yet, in all topics that are shown.", Value, "short", []Query{
				{`sum(siding_dead_letters_open{messaging_destination_name=~"$topic"})`, "open"},
			}},
			{"In the last 5 min", "Letters that came within five minutes. An alert fires above the topic's threshold \"new\".", Value, "short", []Query{
				{`sum(siding_dead_letters_recent{messaging_destination_name=~"$topic"})`, "new"},
			}},
			{"Oldest open letter", "How long ago the oldest open letter was written.", Value, "s", []Query{
				{`time() - min(siding_dead_letters_oldest_open_seconds{messaging_destination_name=~"$topic"})`, "age"},
			}},
			{"Retention takes the first in", "The time that is left until Kafka's retention deletes an open letter. No data: nothing is open, or the topics keep letters for ever.", Value, "s", []Query{
				{`min(siding_dead_letters_next_expiry_seconds{messaging_destination_name=~"$topic"}) - time()`, "left"},
			}},
			{"New classes", "Classes of errors that were never seen before, as long as they are new: a day, or the topic's threshold \"new-class\".", Value, "short", []Query{
				{`sum(siding_dead_letters_new_classes{messaging_destination_name=~"$topic"})`, "classes"},
			}},
			{"Not read yet", "Offsets that servers have still to read. Above 0, all other panels lack these.", Value, "short", []Query{
				{`sum(siding_dead_letters_unread{messaging_destination_name=~"$topic"})`, "offsets"},
			}},
		}},
		{"What fails", []Panel{
			{"Open by class", "Open letters by class of the error. The classes beyond the server's max-classes are _OTHER.", Stack, "short", []Query{
				{`sum by (error_type) (siding_dead_letters_open{messaging_destination_name=~"$topic"})`, "{{error_type}}"},
			}},
			{"In per minute, by class", "Letters per minute by class, as the average of five minutes.", Stack, "cpm", []Query{
				{`sum by (error_type) (siding_dead_letters_recent{messaging_destination_name=~"$topic"}) / 5`, "{{error_type}}"},
			}},
		}},
		{"Where", []Panel{
			{"Open by topic", "Open letters by dead-letter topic.", Lines, "short", []Query{
				{`sum by (messaging_destination_name) (siding_dead_letters_open{messaging_destination_name=~"$topic"})`, "{{messaging_destination_name}}"},
			}},
			{"Written by topic", "Letters per second that servers saw coming, resolved ones included. A server that starts counts from 0.", Lines, "wps", []Query{
				{`sum by (messaging_destination_name) (rate(siding_dead_letters_written_total{messaging_destination_name=~"$topic"}[$__rate_interval]))`, "{{messaging_destination_name}}"},
			}},
			{"Oldest open letter by topic", "Its age. An alert fires above the limit, the topic's threshold \"oldest\".", Lines, "s", []Query{
				{`time() - min by (messaging_destination_name) (siding_dead_letters_oldest_open_seconds{messaging_destination_name=~"$topic"})`, "{{messaging_destination_name}}"},
				{`max by (messaging_destination_name) (siding_dead_letters_threshold{messaging_destination_name=~"$topic", siding_threshold="oldest"})`, "limit of {{messaging_destination_name}}"},
			}},
		}},
		{"Brought back", []Panel{
			{"Outcomes of redrives", "Redriven letters per minute by what became of them: succeeded, failed again, discarded, and those of which nothing can be known.", Stack, "cpm", []Query{
				{`60 * sum by (siding_letter_state) (rate(siding_redrive_outcomes_total{messaging_destination_name=~"$topic"}[$__rate_interval]))`, "{{siding_letter_state}}"},
			}},
			{"Success of the last run", "Which share of the letters of each topic's last run succeeded, of those that succeeded or failed again, or that an aborted run was to send. An alert fires below 90 %. No data: no run within a day.", Lines, "percentunit", []Query{
				{`min by (messaging_destination_name) (siding_redrive_success_ratio{messaging_destination_name=~"$topic"})`, "{{messaging_destination_name}}"},
			}},
			{"Resolved letters", "Letters by how they were resolved, as long as they are in their topic.", Stack, "short", []Query{
				{`sum by (siding_letter_state) (siding_dead_letters_resolved{messaging_destination_name=~"$topic"})`, "{{siding_letter_state}}"},
			}},
		}},
		{"Runs, rules, retention", []Panel{
			{"Runs by state", "Redrive runs by state; done and aborted ones as long as the ledger has them.", Lines, "short", []Query{
				{`sum by (siding_run_state) (siding_redrive_runs{messaging_destination_name=~"$topic"})`, "{{siding_run_state}}"},
			}},
			{"Rules by state", "Rules by the state of their circuit, each once for each topic that it applies to. An open one rests after a run that aborted.", Lines, "short", []Query{
				{`sum by (siding_rule_name, siding_rule_state) (siding_redrive_rules{messaging_destination_name=~"$topic"})`, "{{siding_rule_name}} {{siding_rule_state}}"},
			}},
			{"Open letters that retention takes", "Open letters by the time within which Kafka's retention deletes them: each line includes the shorter times.", Lines, "short", []Query{
				{`sum by (siding_within) (siding_dead_letters_expiring{messaging_destination_name=~"$topic"})`, "within {{siding_within}}"},
			}},
		}},
	},
}
