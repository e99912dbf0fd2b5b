import type { JSX } from 'preact'
import { fit } from './picture-layout.ts'

const FONTS = "ui-sans-serif, system-ui, sans-serif, 'Apple Color Emoji'"
let pen: CanvasRenderingContext2D | null | undefined

/** Width of a text in the units of the picture. */
function widthOf(text: string, size: number, weight: number): number {
  pen ??= document.createElement('canvas').getContext('2d')
  if (!pen) return text.length * size * 0.65
  pen.font = `${weight} ${size}px ${FONTS}`
  return pen.measureText(text).width
}

const fitted = new Map<string, string>()

interface FittedProps {
  x: number
  y: number
  /** The room for the text, in the units of the picture. */
  width: number
  size: number
  weight?: number
  anchor?: 'start' | 'middle' | 'end'
  class?: string
  children: string
}

/** A text in a picture that stays within its width. */
export function FittedText(props: FittedProps): JSX.Element {
  const { x, y, width, size, weight = 400, anchor = 'start', class: more = '', children } = props
  const key = `${size} ${weight} ${Math.round(width)} ${children}`
  let shown = fitted.get(key)
  if (shown === undefined) {
    shown = fit(children, width, (text) => widthOf(text, size, weight))
    if (fitted.size > 500) fitted.clear()
    fitted.set(key, shown)
  }
  return (
    <text
      x={x}
      y={y}
      font-size={size}
      font-weight={weight}
      text-anchor={anchor}
      class={`fill-base-content ${more}`}
    >
      {shown}
    </text>
  )
}
