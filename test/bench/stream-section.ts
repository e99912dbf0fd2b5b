import type { Section } from './figures.ts'
import { benchStream, type StreamBench } from './stream.ts'

/** Runs `stream.ts` several times. */
export async function streamSection(options: {
  folder: string
  runs: number
  entries: number
}): Promise<Section> {
  const { folder, runs, entries } = options
  const benches: StreamBench[] = []
  for (let run = 0; run < runs; run++) benches.push(await benchStream({ entries, folder }))
  const each = (pick: (bench: StreamBench) => number): number[] => benches.map(pick)
  const collected = entries.toLocaleString('en')
  return {
    title: `reliable stream, hub to cloud, after ${collected} entries were collected offline (${runs} runs)`,
    figures: [
      {
        name: 'end to end, durable on both sides',
        values: each(({ perSecond }) => perSecond),
        unit: 'entries/s',
        aim: 'at least 25,000',
      },
      {
        name: 'bare statements, file to file',
        values: each(({ barePerSecond }) => barePerSecond),
        unit: 'entries/s',
      },
      { name: 'ratio, bare to Larder', values: each(({ ratio }) => ratio), unit: 'times' },
      {
        name: "single appends to the hub's ledger",
        values: each(({ appendsPerSecond }) => appendsPerSecond),
        unit: 'commits/s',
      },
      { name: "processor time of the hub's side", values: each(({ hubCpuMs }) => hubCpuMs), unit: 'ms' },
      {
        name: "processor time of the cloud's side",
        values: each(({ cloudCpuMs }) => cloudCpuMs),
        unit: 'ms',
      },
    ],
    notes: [],
  }
}
