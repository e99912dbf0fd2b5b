import { Lock, LockOpen } from 'lucide'
import { signal } from '@preact/signals'
import { type ComponentChildren, Fragment, h, type JSX } from 'preact'
import { FittedText } from './fitted-text.tsx'
import { Cabinet, cabinetRows, type RowPlace } from './picture-cabinet.tsx'
import { deviceByKey, type Box, layOut } from './picture-layout.ts'
import { Frame, Mark } from './picture-parts.tsx'
import {
  type HubPicture,
  nameOf,
  type PictureBin,
  type PictureController,
  type PictureDoor,
  type PictureFridge,
  sentenceOf,
} from './picture-model.ts'

export interface PictureProps {
  picture: HubPicture
  /** The number of devices side by side: 2 on a telephone, else 4. */
  columns: number
  /** The device that the page shows. */
  selected: string | null
  /** `row`: the person touched this row of a cabinet, `2/3`. */
  onSelect: (id: string, row?: string) => void
}

/** The device that the tab key reaches. */
const current = signal<string | null>(null)

/** Moves the keyboard focus to a device of the picture. */
export function focusDevice(id: string): void {
  current.value = id
  document.querySelector<SVGGElement>(`[data-device="${id}"]`)?.focus()
}

/**
 * The picture of a hub: the room and all devices in it. Each device is a button. The tab key stops once in the picture;
 * arrow keys, Home and End move between devices.
 */
export function Picture({ picture, columns, selected, onSelect }: PictureProps): JSX.Element {
  const { width, height, inner, room, boxes } = layOut(picture, columns)
  const tabStop = [current.value, selected].find((id) => id !== null && boxes.has(id)) ?? [...boxes.keys()][0]
  const owner = picture.controllers.find(({ id }) => id === selected)
  const device = (id: string, draw: (box: Box) => ComponentChildren): JSX.Element | null => {
    const box = boxes.get(id)
    if (!box) return null
    return (
      <Device
        key={id}
        id={id}
        box={box}
        label={`${nameOf(id)}: ${sentenceOf(picture, id) ?? ''}`}
        isSelected={selected === id}
        isOwned={owner?.devices.includes(id) ?? false}
        isTabStop={id === tabStop}
        onSelect={onSelect}
        onKey={(key) => {
          const next = deviceByKey(boxes, id, key)
          if (next !== undefined) focusDevice(next)
          return next !== undefined
        }}
        rows={cabinetRows(picture, id, box)}
      >
        {draw(box)}
      </Device>
    )
  }
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      class="block w-full h-auto select-none font-sans"
      role="group"
      aria-label="The hub"
      data-columns={columns}
    >
      <rect {...room} rx="10" class="fill-base-200 stroke-base-content/40" stroke-width="3" />
      {picture.cabinets.map((one) => device(one.id, (box) => <Cabinet cabinet={one} box={box} />))}
      {picture.fridges.map((one) => device(one.id, (box) => <Fridge fridge={one} box={box} width={inner} />))}
      {picture.fridges.flatMap(({ doors }) =>
        doors.map((one) =>
          device(one.id, (box) => <Door door={one} box={box} name={one.id.replace(/^fridge_\d+_/, '')} />),
        ),
      )}
      {picture.bins.map((one) => device(one.id, (box) => <Bin bin={one} box={box} />))}
      {picture.main &&
        device(picture.main.id, (box) => <Door door={picture.main!} box={box} name="main door" />)}
      {picture.controllers.map((one) => device(one.id, (box) => <Controller controller={one} box={box} />))}
    </svg>
  )
}

interface DeviceProps {
  id: string
  box: Box
  label: string
  isSelected: boolean
  isOwned: boolean
  isTabStop: boolean
  onSelect: (id: string, row?: string) => void
  /** Returns whether the key moved the focus. */
  onKey: (key: string) => boolean
  /** The rows of a cabinet. A touch selects each, and a pointer shows its name. */
  rows: readonly RowPlace[]
  children: ComponentChildren
}

function Device(props: DeviceProps): JSX.Element {
  const { id, box, label, isSelected, isOwned, isTabStop, onSelect, onKey, rows, children } = props
  const ring = isSelected
    ? 'stroke-primary'
    : isOwned
      ? 'stroke-secondary'
      : 'stroke-transparent group-hover:stroke-primary/50 group-focus-visible:stroke-primary'
  return (
    <>
      <g aria-hidden="true">{children}</g>
      {/* It lies over the drawing, which is only visual; the label of the button describes it. */}
      <g
        role="button"
        tabindex={isTabStop ? 0 : -1}
        aria-label={label}
        aria-pressed={isSelected}
        data-device={id}
        class="group cursor-pointer outline-none"
        onClick={() => onSelect(id)}
        onFocus={() => void (current.value = id)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' || event.key === ' ') onSelect(id)
          else if (!onKey(event.key)) return
          event.preventDefault()
        }}
      >
        <rect
          x={box.x - 3}
          y={box.y - 3}
          width={box.width + 6}
          height={box.height + 6}
          rx="8"
          fill="transparent"
          stroke-width="3"
          class={ring}
        />
        {rows.map(({ key, words, ...place }) => (
          <rect
            key={key}
            {...place}
            fill="transparent"
            data-picture-row={key}
            onClick={(event) => {
              event.stopPropagation()
              onSelect(id, key)
            }}
          >
            <title>{words}</title>
          </rect>
        ))}
      </g>
    </>
  )
}

function Fridge({ fridge, box, width }: { fridge: PictureFridge; box: Box; width: number }): JSX.Element {
  return (
    <>
      <Frame box={{ ...box, width }} trouble={fridge.trouble} />
      <text x={box.x + 8} y={box.y + 18} font-size="12" font-weight="600" class="fill-base-content">
        {nameOf(fridge.id)}
      </text>
      <FittedText x={box.x + 8} y={box.y + 42} size={fridge.celsius === null ? 12 : 17} width={76}>
        {fridge.celsius === null ? 'unknown °C' : `${fridge.celsius.toFixed(1)} °C`}
      </FittedText>
      {fridge.trouble && <Mark x={box.x + 74} y={box.y + 14} />}
    </>
  )
}

function Door({ door, box, name }: { door: PictureDoor; box: Box; name: string }): JSX.Element {
  const { open, locked, trouble } = door
  const leaf = box.width - 8
  // The end of an open door is this far out, whatever its width.
  const angle = (Math.asin(Math.min(1, 16 / leaf)) * 180) / Math.PI
  const middle = box.y + box.height / 2
  return (
    <>
      <rect
        {...box}
        rx="4"
        class={`${open ? 'fill-warning/25' : 'fill-base-300'} ${trouble ? 'stroke-error' : 'stroke-base-content/40'}`}
      />
      {/* The leaf turns on its left hinge. */}
      <g transform={`translate(${box.x + 4} ${box.y + box.height - 4})`}>
        <g class="glide" style={{ transform: `rotate(${open ? -angle : 0}deg)` }}>
          <rect
            x="0"
            y="-3"
            width={leaf}
            height="4"
            rx="2"
            class={open ? 'fill-warning' : 'fill-base-content/60'}
          />
        </g>
      </g>
      <FittedText x={box.x + 24} y={open ? box.y + 12 : middle + 2} size={11} width={box.width - 30}>
        {name}
      </FittedText>
      {locked !== null && (
        <svg
          x={box.x + 7}
          y={middle - 8}
          width="13"
          height="13"
          viewBox="0 0 24 24"
          fill="none"
          stroke="currentColor"
          stroke-width="2.5"
        >
          {(locked ? Lock : LockOpen).map(([tag, attributes]) => h(tag, attributes))}
        </svg>
      )}
    </>
  )
}

const liftHeights: Readonly<Record<string, number>> = { up: 0, down: 1 }

function Bin({ bin, box }: { bin: PictureBin; box: Box }): JSX.Element {
  const { door, lift, note, trouble } = bin
  const shaft = { x: box.x + 10, y: box.y + 24, width: box.width * 0.5, height: box.height - 34 }
  const doorX = shaft.x + shaft.width + 6
  return (
    <>
      <Frame box={box} trouble={trouble} />
      <text x={box.x + 8} y={box.y + 15} font-size="12" font-weight="600" class="fill-base-content">
        {nameOf(bin.id)}
      </text>
      <rect {...shaft} rx="3" class="fill-base-200 stroke-base-content/20" />
      <BinLift bin={bin} shaft={shaft} />
      <BinDoor door={door} shaft={shaft} x={doorX} />
      {Object.entries({ door, lift }).map(([part, value], index) => (
        <Fragment key={part}>
          <text x={doorX + 15} y={shaft.y + 12 + index * 26} font-size="10" class="fill-base-content">
            {part}
          </text>
          <FittedText
            x={doorX + 15}
            y={shaft.y + 24 + index * 26}
            size={10}
            weight={600}
            width={box.x + box.width - doorX - 19}
          >
            {value}
          </FittedText>
        </Fragment>
      ))}
      {note && (
        <FittedText
          x={box.x + box.width - (trouble ? 24 : 8)}
          y={box.y + 15}
          size={11}
          width={box.width - (trouble ? 88 : 72)}
          anchor="end"
        >
          {note}
        </FittedText>
      )}
      {trouble && <Mark x={box.x + box.width - 12} y={box.y + 12} />}
    </>
  )
}

/** The platform of the lift, with the units on it. */
function BinLift({ bin, shaft }: { bin: PictureBin; shaft: Box }): JSX.Element {
  const { lift, units, occupied } = bin
  const floor = shaft.y + 14 + (liftHeights[lift] ?? 0.5) * (shaft.height - 18)
  const shown = Math.min(units ?? (occupied ? 1 : 0), 10)
  return (
    <g class="glide" style={{ transform: `translateY(${floor}px)` }}>
      <rect
        x={shaft.x + 2}
        y="0"
        width={shaft.width - 4}
        height="4"
        rx="1"
        class={lift === 'moving' ? 'fill-warning' : 'fill-base-content/70'}
      />
      {Array.from({ length: shown }, (_, index) => (
        <rect
          key={index}
          x={shaft.x + 4 + (index % 5) * ((shaft.width - 8) / 5)}
          y={-10 - Math.floor(index / 5) * 10}
          width={(shaft.width - 8) / 5 - 2}
          height="9"
          rx="1"
          class="fill-info"
        />
      ))}
    </g>
  )
}

/** The door slides up: the part in front of the opening is the closed part. */
function BinDoor({ door, shaft, x }: { door: string; shaft: Box; x: number }): JSX.Element {
  const closed = door === 'closed' ? 1 : door === 'open' ? 0.12 : 0.55
  return (
    <>
      <rect x={x} y={shaft.y} width="9" height={shaft.height} class="fill-base-200 stroke-base-content/30" />
      <rect
        x={x}
        y={shaft.y}
        width="9"
        height={shaft.height}
        class={`glide ${door === 'closed' ? 'fill-base-content/60' : 'fill-warning'}`}
        style={{ transformOrigin: `0 ${shaft.y}px`, transform: `scaleY(${closed})` }}
      />
    </>
  )
}

function Controller({ controller, box }: { controller: PictureController; box: Box }): JSX.Element {
  const { id, powered, connected, traffic, trouble } = controller
  return (
    <>
      <rect {...box} rx="15" class={`fill-base-100 ${trouble ? 'stroke-error' : 'stroke-base-content/40'}`} />
      <circle
        cx={box.x + 16}
        cy={box.y + box.height / 2}
        r="6"
        class={
          !powered ? 'fill-base-300 stroke-base-content/40' : connected ? 'fill-success' : 'fill-warning'
        }
      />
      {/* It blinks: each line that passes changes its colour. */}
      <circle
        cx={box.x + box.width - 16}
        cy={box.y + box.height / 2}
        r="4"
        class={traffic % 2 === 0 ? 'fill-info/30' : 'fill-info'}
      />
      <FittedText x={box.x + 28} y={box.y + box.height / 2 + 4} size={11.5} width={box.width - 52}>
        {id}
      </FittedText>
    </>
  )
}
