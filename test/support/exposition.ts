import { spawnSync } from 'node:child_process'

export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

interface Exposition {
  /** By metric name; samples of histograms and summaries have it with a suffix. */
  types: Map<string, string>
  helps: Map<string, string>
  samples: Sample[]
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)/y

/** Parses an exposition like Prometheus. Throws at an invalid line. */
export function readExposition(text: string): Exposition {
  const read: Exposition = { types: new Map(), helps: new Map(), samples: [] }
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, word, name, rest] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (word !== undefined) (word === 'TYPE' ? read.types : read.helps).set(name!, rest!)
    else {
      const [, sample, labels = '', value] = SAMPLE.exec(line) ?? []
      if (sample === undefined) throw new Error(`not a line of an exposition: ${line}`)
      read.samples.push({ name: sample, labels: readLabels(labels), value: Number(value) })
    }
  }
  return read
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < text.length) {
    const match = LABEL.exec(text)
    if (!match) throw new Error(`not labels: ${text}`)
    labels[match[1]!] = match[2]!
  }
  return labels
}

/** Problems of an exposition by Prometheus' conventions; also by `promtool`, if it is installed. */
export function problemsOf(text: string): string[] {
  const { types, helps, samples } = readExposition(text)
  const problems: string[] = []
  const seen = new Set<string>()
  for (const { name, labels, value } of samples) {
    const metric = [name, name.replace(/_(bucket|sum|count)$/, '')].find((each) => types.has(each))
    if (metric === undefined) {
      problems.push(`${name} has no type`)
      continue
    }
    if (!helps.get(metric)) problems.push(`${metric} has no help`)
    const isCounter = types.get(metric) === 'counter'
    if (isCounter !== metric.endsWith('_total'))
      problems.push(`${metric}: counters, and they alone, end in _total`)
    if (/_(ms|milliseconds|minutes|kb|mb|percent)(_|$)/.test(metric))
      problems.push(`${metric}: seconds, bytes, ratios`)
    if (/[A-Z]|__/.test(metric)) problems.push(`${metric}: snake_case`)
    const key = `${name} ${JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))}`
    if (seen.has(key)) problems.push(`${key} twice`)
    seen.add(key)
    if (Number.isNaN(value) && !name.startsWith('nodejs_')) problems.push(`${key} is no number`)
  }
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  })
  if (typeof status === 'number' && status !== 0) problems.push(`promtool: ${stdout}${stderr}`)
  return [...new Set(problems)]
}

/** The one sample with these labels. */
export const valueOf = (
  text: string,
  name: string,
  labels: Record<string, string> = {},
): number | undefined =>
  readExposition(text).samples.find(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )?.value
