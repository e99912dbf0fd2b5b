import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Section } from './figures.ts'

/**
 * The result of a run as one page without external files: each figure's values, ratios by round, and growth.
 */
export function reportOf(sections: readonly Section[], about: readonly string[]): string {
  const data = JSON.stringify(sections).replaceAll('<', '\\u003c')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Larder's benchmarks</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
  body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
  h2 { margin-top: 3rem; font-size: 1.2rem }
  .note { opacity: 0.75; font-size: 0.875rem }
  .plots { overflow-x: auto }
  table { border-collapse: collapse; font-size: 0.875rem; display: block; overflow-x: auto }
  td, th { padding: 0.15rem 0.75rem; text-align: left; border-bottom: 1px solid #8884 }
  .number { text-align: right; font-variant-numeric: tabular-nums }
</style>
<h1>Larder's benchmarks</h1>
${about.map((line) => `<p class="note">${escaped(line)}</p>`).join('\n')}
<main></main>
<script>${packaged('d3', 'dist/d3.min.js')}</script>
<script>${packaged('@observablehq/plot', 'dist/plot.umd.min.js')}</script>
<script>(${draw.toString()})(${data})</script>
</html>
`
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** A program of a package, between two tags. */
function packaged(name: string, file: string): string {
  const from = createRequire(import.meta.url)
  const main = from.resolve(name)
  const folder = main.slice(0, main.lastIndexOf(`/node_modules/${name}/`))
  return readFileSync(`${folder}/node_modules/${name}/${file}`, 'utf8').replaceAll('</script', '<\\/script')
}

/** The used part of a page; these programs have no types for the rest. */
interface Part {
  textContent: string
  className: string
  appendChild(child: Part): Part
  append(...children: unknown[]): void
}
declare const document: { querySelector(selector: string): Part | null; createElement(tag: string): Part }
declare const Plot: typeof import('@observablehq/plot')

/** Runs in the page, and therefore uses nothing outside of this function. */
function draw(sections: readonly Section[]): void {
  const main = document.querySelector('main')!
  const number = (value: number): string =>
    Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
  const add = (parent: Part, tag: string, text = '', className = ''): Part => {
    const made = document.createElement(tag)
    made.textContent = text
    if (className) made.className = className
    return parent.appendChild(made)
  }
  for (const { title, figures, notes } of sections) {
    const section = add(main, 'section')
    add(section, 'h2', title)
    for (const note of notes) add(section, 'p', note, 'note')
    const table = add(section, 'table')
    const head = add(table, 'tr')
    for (const name of ['', 'least', 'median', 'greatest', 'unit', 'aim']) add(head, 'th', name)
    for (const { name, values, unit, aim } of figures) {
      const row = add(table, 'tr')
      const sorted = values.toSorted((a, b) => a - b)
      add(row, 'td', name)
      for (const place of [0, (sorted.length - 1) / 2, sorted.length - 1]) {
        const middle = (sorted[Math.floor(place)]! + sorted[Math.ceil(place)]!) / 2
        add(row, 'td', number(middle), 'number')
      }
      add(row, 'td', unit)
      add(row, 'td', aim ?? '')
    }
    const plots = add(section, 'div', '', 'plots')
    const rows = figures.flatMap(({ name, values, unit, growth }) =>
      values.map((value, index) => ({ name, unit, value, round: index + 1, growth })),
    )
    for (const unit of new Set(figures.map((figure) => figure.unit))) {
      const mine = rows.filter((row) => row.unit === unit)
      plots.append(
        Plot.plot({
          marginLeft: 380,
          width: 1000,
          x: { label: unit, grid: true, zero: true },
          y: { label: null, domain: [...new Set(mine.map(({ name }) => name))] },
          marks: [
            ...(unit.startsWith('times') ? [Plot.ruleX([1], { strokeDasharray: '4' })] : []),
            Plot.dot(mine, { x: 'value', y: 'name', fill: 'steelblue', fillOpacity: 0.5 }),
            Plot.tickX(mine, Plot.groupY({ x: 'median' }, { x: 'value', y: 'name', strokeWidth: 2 })),
          ],
        }),
      )
      if (unit.startsWith('times') && mine.some(({ round }) => round > 1))
        plots.append(
          Plot.plot({
            width: 1000,
            grid: true,
            x: { label: 'round', tickFormat: 'd', interval: 1 },
            y: { label: unit, zero: true },
            color: { legend: true },
            marks: [
              Plot.ruleY([1], { strokeDasharray: '4' }),
              Plot.lineY(mine, { x: 'round', y: 'value', stroke: 'name', marker: 'circle' }),
            ],
          }),
        )
    }
    const growing = rows.flatMap(({ growth, ...row }) => (growth ? [{ ...row, ...growth }] : []))
    for (const of of new Set(growing.map((row) => row.of)))
      for (const unit of new Set(growing.map((row) => row.unit))) {
        const mine = growing.filter((row) => row.of === of && row.unit === unit)
        plots.append(
          Plot.plot({
            width: 1000,
            grid: true,
            x: { label: of, type: 'log' },
            y: { label: unit, zero: true },
            color: { legend: true },
            marks: [
              Plot.dot(mine, { x: 'at', y: 'value', stroke: 'line', strokeOpacity: 0.5 }),
              Plot.lineY(mine, Plot.groupX({ y: 'median' }, { x: 'at', y: 'value', stroke: 'line' })),
            ],
          }),
        )
      }
  }
}
