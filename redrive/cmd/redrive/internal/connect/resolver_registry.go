package connect

import "github.com/sidingkafka/siding/serve/payload"

// registry reads where the schema registry is. Without its URL there is none.
func (r *resolver) registry() {
	at := r.get(registryURL)
	pass, err := r.secret(registryPassword)
	tok, err2 := r.secret(registryToken)
	is := payload.Registry{
		URL: at.text, Username: r.get(registryUser).text, Password: pass.text, PasswordFile: pass.file, Token: tok.text, TokenFile: tok.file,
		CAFile: r.get(registryCA).text, CertFile: r.get(registryCert).text, KeyFile: r.get(registryKey).text,
	}
	for _, err := range []error{err, err2} {
		if err != nil {
			r.errs = append(r.errs, err)
		}
	}
	for _, s := range []Secret{pass, tok} {
		if _, err := s.reveal(); err != nil && s.given() {
			r.errs = append(r.errs, err)
		}
	}
	if err := is.Check(); err != nil {
		from := at.from
		if from == "" {
			from = "--" + registryURL
		}
		r.problem("%s: %w", from, err)
		return
	}
	if is.Unencrypted() {
		r.warn("%s: the secret goes to the registry unencrypted: give an https:// URL", at.from)
	}
	r.cluster.Registry = is
}
