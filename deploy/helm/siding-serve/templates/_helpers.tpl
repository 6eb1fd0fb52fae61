{{- define "siding.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "siding.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "siding.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "siding.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "siding.selector" -}}
app.kubernetes.io/name: {{ include "siding.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "siding.labels" -}}
{{ include "siding.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "siding.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "siding.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "siding.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "siding.scheme" -}}
{{- if or .Values.tls.secret (index (.Values.config.tls | default dict) "cert-file") }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* The name of the Secret with the key of sessions; empty if the configuration names a file of its own. */}}
{{- define "siding.session" -}}
{{- if not (index (.Values.config.access | default dict) "session-key-file") }}
{{- (.Values.session | default dict).secret | default (printf "%s-session" (include "siding.fullname" . | trunc 55 | trimSuffix "-")) }}
{{- end }}
{{- end }}

{{/* serve.yaml: that of the values, and what the chart mounts. */}}
{{- define "siding.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $access := $config.access | default dict }}
{{- if and .Values.tokens.secret (not (index $access "tokens-file")) }}
{{- $_ := set $access "tokens-file" "/etc/siding/tokens/tokens.yaml" }}
{{- end }}
{{- if not (or (index $access "tokens-file") $access.proxy $access.oidc) }}
{{- fail "nobody could use the server: set tokens.secret to the name of a Secret with tokens.yaml, or config.access.oidc, or config.access.proxy" }}
{{- end }}
{{- if include "siding.session" . }}
{{- $_ := set $access "session-key-file" "/etc/siding/session/session.key" }}
{{- end }}
{{- $_ := set $config "access" $access }}
{{- $_ := set $config "listen" ":8642" }}
{{- if .Values.tls.secret }}
{{- $_ := set $config "tls" (dict "cert-file" "/etc/siding/tls/tls.crt" "key-file" "/etc/siding/tls/tls.key") }}
{{- end }}
{{- if .Values.rules }}
{{- $_ := set $config "rules-file" "rules.yaml" }}
{{- end }}
{{- if and .Values.ingress.enabled (not $config.url) }}
{{- $_ := set $config "url" (printf "%s://%s" (ternary "https" "http" (ne .Values.ingress.tlsSecret "")) .Values.ingress.host) }}
{{- end }}
{{- toYaml $config }}
{{- end }}
