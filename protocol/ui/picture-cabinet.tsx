import type { JSX } from 'preact'
import { type Box, SHELF } from './picture-layout.ts'
import {
  type HubPicture,
  nameOf,
  type PictureCabinet,
  type PictureRow,
  rowState,
  type RowState,
  rowText,
} from './picture-model.ts'
import { Frame, Mark } from './picture-parts.tsx'

/** The position of a cabinet's row in the picture. */
export interface RowPlace extends Box {
  /** `2/3`: shelf and row. */
  key: string
  words: string
}

function placesOf({ shelves }: PictureCabinet, box: Box): { row: PictureRow; place: Box }[] {
  return shelves.flatMap(({ rows }, index) => {
    const cell = (box.width - 12) / Math.max(1, rows.length)
    return rows.map((row, at) => ({
      row,
      place: {
        x: box.x + 6 + at * cell + 1,
        y: box.y + 22 + index * SHELF,
        width: cell - 2,
        height: SHELF - 3,
      },
    }))
  })
}

/** The rows of a cabinet; empty for other devices. */
export function cabinetRows({ cabinets }: HubPicture, id: string, box: Box): RowPlace[] {
  const cabinet = cabinets.find((one) => one.id === id)
  if (!cabinet) return []
  return placesOf(cabinet, box).map(({ row, place }) => ({
    ...place,
    key: `${row.shelf}/${row.row}`,
    words: rowText(cabinet.number, row),
  }))
}

const looks: Readonly<Record<RowState, { frame: string; fill: string; sign: (row: PictureRow) => string }>> =
  {
    unassigned: { frame: 'fill-none stroke-base-content/25', fill: '', sign: () => '' },
    unknown: { frame: 'fill-warning/25 stroke-warning', fill: '', sign: () => '?' },
    blocked: { frame: 'fill-base-200 stroke-error', fill: 'fill-error/50', sign: () => '✕' },
    empty: { frame: 'fill-base-100 stroke-error', fill: '', sign: () => '0' },
    low: { frame: 'fill-base-200', fill: 'fill-warning/70', sign: ({ units }) => `${units}` },
    stocked: { frame: 'fill-base-200', fill: 'fill-info/35', sign: ({ units }) => `${units}` },
  }

function Row({ row, place }: { row: PictureRow; place: Box }): JSX.Element {
  const state = rowState(row)
  const { frame, fill, sign } = looks[state]
  const units = row.units ?? 0
  const full = row.depth === null ? (units > 0 ? 1 : 0) : units / Math.max(1, row.depth)
  const tall = Math.round(Math.min(1, full) * (place.height - 2))
  return (
    <g data-row-state={state}>
      <rect {...place} class={frame} stroke-dasharray={state === 'unassigned' ? '2 3' : undefined} />
      {fill !== '' && <rect {...place} y={place.y + place.height - tall} height={tall} class={fill} />}
      {place.width >= 12 && (
        <text
          x={place.x + place.width / 2}
          y={place.y + SHELF / 2 + 3}
          text-anchor="middle"
          font-size="11"
          font-weight={state === 'stocked' ? 400 : 700}
          class="fill-base-content"
        >
          {sign(row)}
        </text>
      )}
    </g>
  )
}

export function Cabinet({ cabinet, box }: { cabinet: PictureCabinet; box: Box }): JSX.Element {
  return (
    <>
      <Frame box={box} trouble={cabinet.trouble} />
      <text x={box.x + 8} y={box.y + 15} font-size="12" font-weight="600" class="fill-base-content">
        {nameOf(cabinet.id)}
      </text>
      {cabinet.shelves.map(({ shelf }, index) => (
        <line
          key={shelf}
          x1={box.x + 4}
          x2={box.x + box.width - 4}
          y1={box.y + 19 + (index + 1) * SHELF}
          y2={box.y + 19 + (index + 1) * SHELF}
          class="stroke-base-content/30"
        />
      ))}
      {placesOf(cabinet, box).map(({ row, place }) => (
        <Row key={`${row.shelf}/${row.row}`} row={row} place={place} />
      ))}
      {cabinet.trouble && <Mark x={box.x + box.width - 12} y={box.y + 11} />}
    </>
  )
}

const legend: readonly [RowState, string][] = [
  ['stocked', 'in stock'],
  ['low', 'low'],
  ['empty', 'empty'],
  ['blocked', 'not for sale'],
  ['unknown', 'unknown'],
  ['unassigned', 'no product'],
]

/** The legend of the symbols for rows. */
export function PictureLegend(): JSX.Element {
  return (
    <ul class="flex flex-wrap gap-x-3 gap-y-1 text-xs mt-2" aria-label="Signs of rows">
      {legend.map(([state, words]) => (
        <li key={state} class="flex items-center gap-1">
          <svg viewBox="0 0 22 24" class="h-5 font-sans" aria-hidden="true">
            <Row
              row={{
                shelf: 1,
                row: 1,
                units: state === 'stocked' ? 8 : state === 'low' ? 2 : state === 'blocked' ? 5 : 0,
                depth: 10,
                product: state === 'unassigned' ? null : '',
                blocked: state === 'blocked' ? '' : state === 'unknown' ? 'unknown' : null,
              }}
              place={{ x: 1, y: 1, width: 20, height: 22 }}
            />
          </svg>
          {words}
        </li>
      ))}
    </ul>
  )
}
