package request

import "github.com/sidingkafka/siding/serve/api"

// Values asks for the open letters by a field.
type Values struct {
	Topic
	api.Filter
	By string `query:"by" required:"true" minLength:"1" maxLength:"1000" doc:"What to count by: header:NAME, or the path of a member of the value such as value.customer, value.items[0].sku or value[\"odd name\"]."`
}
