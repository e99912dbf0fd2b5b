import type { WireEntry } from '../wire-entry.ts'

export const asJsonLines = (entries: readonly WireEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')

/**
 * The wire as a value change dump (IEEE 1364 §18) for viewers of logic analysers. It has a signal for each GPIO line, a
 * signal for each motor (1 while it runs), and an event for each frame. `levels`: the present levels of the lines,
 * which determine the levels before the first edge.
 */
export function asVcd(entries: readonly WireEntry[], levels: Readonly<Record<string, number>>): string {
  const ids = new Map<string, string>()
  const idOf = (signal: string): string => {
    const id = ids.get(signal) ?? codeOf(ids.size)
    ids.set(signal, id)
    return id
  }
  const first = new Map<string, number>()
  for (const entry of entries)
    if (entry.kind === 'edge' && !first.has(entry.gpio)) first.set(entry.gpio, 1 - entry.level)
  const lines = Object.entries(levels).map(([name, level]) => [idOf(name), first.get(name) ?? level] as const)
  const declared = Object.keys(levels).map((name) => `$var wire 1 ${idOf(name)} ${name} $end`)
  const motors = new Set(
    entries.flatMap((entry) => (entry.kind === 'motion' && 'operation_id' in entry ? entry.device : [])),
  )
  for (const motor of motors) declared.push(`$var wire 1 ${idOf(`runs ${motor}`)} ${nameOf(motor)}_runs $end`)
  const frames = entries.flatMap((entry) =>
    entry.kind === 'frame' ? `${entry.controller} ${entry.direction}` : [],
  )
  for (const frame of new Set(frames)) declared.push(`$var event 1 ${idOf(frame)} ${nameOf(frame)} $end`)

  const body: string[] = []
  let at = -1
  for (const entry of entries) {
    const change = changeOf(entry, idOf)
    if (change === undefined) continue
    const us = Math.round(entry.at_ms * 1000)
    if (us > at) body.push(`#${us}`)
    at = Math.max(at, us)
    body.push(change)
  }
  const begin = [
    ...lines.map(([id, level]) => `${level}${id}`),
    ...[...motors].map((motor) => `0${idOf(`runs ${motor}`)}`),
  ]
  return [
    '$timescale 1us $end',
    '$scope module hub $end',
    ...declared,
    '$upscope $end',
    '$enddefinitions $end',
    '$dumpvars',
    ...begin,
    '$end',
    ...body,
    '',
  ].join('\n')
}

function changeOf(entry: WireEntry, idOf: (signal: string) => string): string | undefined {
  switch (entry.kind) {
    case 'edge':
      return `${entry.level}${idOf(entry.gpio)}`
    case 'frame':
      return `1${idOf(`${entry.controller} ${entry.direction}`)}`
    case 'motion':
      // An action of a hand has no motor.
      if (entry.operation_id === undefined) return undefined
      return `${entry.phase === 'began' ? 1 : 0}${idOf(`runs ${entry.device}`)}`
  }
}

const nameOf = (text: string): string => text.replaceAll(/[^A-Za-z0-9_]/g, '_')

/** A short name of printable characters, unique for each number. */
function codeOf(index: number): string {
  const digit = String.fromCharCode(33 + (index % 94))
  return index < 94 ? digit : codeOf(Math.floor(index / 94) - 1) + digit
}
