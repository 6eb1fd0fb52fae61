package request

// Acts asks for who did what on a topic.
type Acts struct {
	Topic
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"200" doc:"Acts, the latest."`
}
