package monitoring

// Matchers of the service's series: all have a group, and most have a source topic.
const (
	ofGroup  = `{messaging_consumer_group_name=~"$group"}`
	ofSource = `{messaging_consumer_group_name=~"$group", messaging_destination_name=~"$source"}`
)

// service is the board about what consumers report.
var service = Board{
	File: "service.json", UID: "siding-service", Title: "siding: service",
	Description: "Whether records run, which fail, how retries flow through the tiers, and what holds them. From the consumers.",
	Variables: []Variable{
		{"group", "Consumer group", "siding_lanes", "messaging_consumer_group_name"},
		{"source", "Source topic", "siding_forwards_inflight", "messaging_destination_name"},
	},
	Rows: []Row{
		{"Health", []Panel{
			{"Lanes by state", "Partitions by what their lane does. Blocked, stuck and stopped ones do not go on; health says why.", Stack, "short", []Query{
				{`sum by (siding_lane_state) (siding_lanes` + ofGroup + `)`, "{{siding_lane_state}}"},
			}},
			{"Members", "Consumers that are in their group, or are joining it, and those whose last commit was refused.", Lines, "short", []Query{
				{`sum by (siding_member_state) (siding_members` + ofGroup + `)`, "{{siding_member_state}}"},
				{`sum(siding_commits_failing` + ofGroup + `)`, "commits fail"},
			}},
			{"Stuck handlers", "Handlers that ignore the end of their context. Each holds a slot until it returns, or until the process ends.", Lines, "short", []Query{
				{`sum by (messaging_consumer_group_name) (siding_handlers_stuck` + ofGroup + `)`, "{{messaging_consumer_group_name}}"},
			}},
		}},
		{"Records", []Panel{
			{"Runs by outcome", "Calls of the handler per second, by what follows: handled, retried, dead_lettered and others.", Stack, "ops", []Query{
				{`sum by (siding_outcome) (rate(messaging_process_duration_seconds_count` + ofSource + `[$__rate_interval]))`, "{{siding_outcome}}"},
			}},
			{"Duration of the handler", "Half, 95 % and 99 % of the calls are shorter.", Lines, "s", []Query{
				{`histogram_quantile(0.5, sum by (le) (rate(messaging_process_duration_seconds_bucket` + ofSource + `[$__rate_interval])))`, "50 %"},
				{`histogram_quantile(0.95, sum by (le) (rate(messaging_process_duration_seconds_bucket` + ofSource + `[$__rate_interval])))`, "95 %"},
				{`histogram_quantile(0.99, sum by (le) (rate(messaging_process_duration_seconds_bucket` + ofSource + `[$__rate_interval])))`, "99 %"},
			}},
			{"Failures by class", "Records per second that failed and went to a tier, to the dead letters or nowhere, by class of the error.", Stack, "ops", []Query{
				{`sum by (error_type) (rate(siding_routed_records_total` + ofSource + `[$__rate_interval]))`, "{{error_type}}"},
			}},
		}},
		{"Retries", []Panel{
			{"To the tiers and dead letters", "Records per second by where they went: the delay of a tier, dlq, or discarded.", Stack, "ops", []Query{
				{`sum by (siding_to) (rate(siding_routed_records_total` + ofSource + `[$__rate_interval]))`, "{{siding_to}}"},
			}},
			{"Parked by tier", "Records that were read and wait until they are due.", Stack, "short", []Query{
				{`sum by (siding_tier) (siding_parked_records` + ofSource + `)`, "{{siding_tier}}"},
			}},
			{"Lateness", "How long after its time a due retry starts: half and 99 % are faster. Lateness grows if handlers are slow or slots few.", Lines, "s", []Query{
				{`histogram_quantile(0.5, sum by (le) (rate(siding_delivery_lateness_seconds_bucket` + ofSource + `[$__rate_interval])))`, "50 %"},
				{`histogram_quantile(0.99, sum by (le) (rate(siding_delivery_lateness_seconds_bucket` + ofSource + `[$__rate_interval])))`, "99 %"},
			}},
		}},
		{"What holds records", []Panel{
			{"Topics by state", "Source topics, once for each process. Strained: many records fail, and failures are no attempts. Held: nearly all fail, and only probes run.", Lines, "short", []Query{
				{`sum by (siding_guard_state) (siding_guards` + ofSource + `)`, "{{siding_guard_state}}"},
			}},
			{"Strained or held", "The share of the time for which a topic was strained, or held.", Lines, "percentunit", []Query{
				{`max by (messaging_destination_name, siding_guard_state) (rate(siding_guard_time_seconds_total` + ofSource + `[$__rate_interval]))`, "{{messaging_destination_name}} {{siding_guard_state}}"},
			}},
			{"Retries that wait for the budget", "Due retries that wait, because too many failed again.", Lines, "short", []Query{
				{`sum by (messaging_destination_name) (siding_retries_held` + ofSource + `)`, "{{messaging_destination_name}}"},
			}},
		}},
		{"Copies and commits", []Panel{
			{"Forwards in flight", "Copies that the brokers have not acknowledged yet. A number that stays high comes before blocked lanes.", Lines, "short", []Query{
				{`sum by (messaging_destination_name) (siding_forwards_inflight` + ofSource + `)`, "{{messaging_destination_name}}"},
			}},
			{"Lag", "Offsets from the first unfinished one to the end, by tier. That of a tier includes records that are not due yet.", Lines, "short", []Query{{`sum by (messaging_destination_name, siding_tier) (siding_lag` + ofSource + `)`, "{{messaging_destination_name}} {{siding_tier}}"}}},
			{"Offsets behind gaps", "Offsets above the first unfinished one that are finished: a crash repeats these at most.", Lines, "short", []Query{
				{`sum by (messaging_destination_name, siding_tier) (siding_offset_gaps` + ofSource + `)`, "{{messaging_destination_name}} {{siding_tier}}"},
			}},
			{"Lost, or without their value", "Records that retention deleted before they were read, and dead letters for whose value their topic has no room, in the last hour.", Lines, "short", []Query{
				{`sum(increase(siding_expired_records_total` + ofSource + `[1h])) or vector(0)`, "expired unread"},
				{`sum(increase(siding_omitted_values_total` + ofSource + `[1h])) or vector(0)`, "without value"},
			}},
		}},
	},
}
