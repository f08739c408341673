{{- define "orchard.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "orchard.chosen" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "orchard.labels" -}}
{{ include "orchard.chosen" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* One object's head: dict with root, name and, when it is not the release's, namespace. */}}
{{- define "orchard.metadata" -}}
name: {{ .name }}
namespace: {{ default .root.Release.Namespace .namespace }}
labels:
  {{- include "orchard.labels" .root | nindent 2 }}
{{- end -}}

{{- define "orchard.sandboxes" -}}
{{- default .Release.Namespace .Values.sandboxes.namespace -}}
{{- end -}}

{{- define "orchard.account" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else -}}
{{- ternary (include "orchard.fullname" .) "default" .Values.serviceAccount.create -}}
{{- end -}}
{{- end -}}

{{- define "orchard.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "orchard.seedSecret" -}}
{{- default "orchard-agent-seed" .Values.sandboxes.existingSeedSecret -}}
{{- end -}}

{{/* Empty when a Secret holds the whole key file, or when there is no first key. */}}
{{- define "orchard.firstKeySecret" -}}
{{- if not .Values.auth.existingSecret -}}
{{- if .Values.auth.firstKey.existingSecret -}}
{{- .Values.auth.firstKey.existingSecret -}}
{{- else if .Values.auth.firstKey.create -}}
{{- printf "%s-first-key" (include "orchard.fullname" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "orchard.redisUrl" -}}
{{- if eq .Values.redis.mode "bundled" -}}
{{- printf "redis://%s-redis:6379/0" (include "orchard.fullname" .) -}}
{{- else if eq .Values.redis.mode "external" -}}
{{- .Values.redis.url -}}
{{- end -}}
{{- end -}}

{{/* Empty when Redis has no password. */}}
{{- define "orchard.redisSecret" -}}
{{- if .Values.redis.existingSecret -}}
{{- .Values.redis.existingSecret -}}
{{- else if eq .Values.redis.mode "bundled" -}}
{{- printf "%s-redis" (include "orchard.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* Where the orchestrator's file of keys is; empty: keys are in Redis. */}}
{{- define "orchard.keyFile" -}}
{{- if .Values.auth.existingSecret -}}
/etc/orchard/keys/keys.json
{{- else if eq .Values.redis.mode "none" -}}
/var/lib/orchard/keys.json
{{- end -}}
{{- end -}}

{{/* What a Secret holds under a name, as base64; empty when it is not there, or nobody can look. */}}
{{- define "orchard.kept" -}}
{{- $found := lookup "v1" "Secret" .namespace .name -}}
{{- if $found -}}
{{- get (default dict $found.data) .key -}}
{{- end -}}
{{- end -}}

{{- define "orchard.env" -}}
{{- with include "orchard.redisUrl" . }}
- {name: ORCHARD_ENV_REDIS_URL, value: {{ . | quote }}}
{{- end }}
{{- if ne .Values.redis.mode "none" }}
{{- with include "orchard.redisSecret" . }}
- name: ORCHARD_ENV_REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ . }}, key: password}}
{{- end }}
{{- end }}
- {name: HOME, value: /tmp}
- {name: PYTHONDONTWRITEBYTECODE, value: "1"}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "orchard.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: keys, mountPath: {{ ternary "/etc/orchard/keys" "/var/lib/orchard" (not (empty .Values.auth.existingSecret)) }}}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "orchard.probe" -}}
{{- if and .root.Values.tls.existingSecret .root.Values.tls.clientCertificates -}}
tcpSocket: {port: http}
{{- else -}}
httpGet: {path: {{ .path }}, port: http, scheme: {{ ternary "HTTPS" "HTTP" (not (empty .root.Values.tls.existingSecret)) }}}
{{- end }}
periodSeconds: {{ .root.Values.probes.periodSeconds }}
timeoutSeconds: {{ .root.Values.probes.timeoutSeconds }}
{{- end -}}
