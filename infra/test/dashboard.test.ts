import { type Stack } from 'aws-cdk-lib';
import { expect, test } from 'vitest';

import { type AsyncRetriesProps } from '../src';
import { newFunction, resources, withOne } from './support';

/** A schema for a dashboard's body, from CloudWatch's API reference ("Dashboard Body Structure and Syntax"). */
const WIDGETS: Record<string, Record<string, (value: unknown) => boolean>> = {
  text: { markdown: isText, background: oneOf('solid', 'transparent') },
  alarm: { alarms: (value) => listOf(isText)(value) && within(value, 1, 100), title: isText },
  metric: {
    metrics: (value) => listOf(isMetric)(value) && within(value, 1, 500),
    region: isText,
    title: isText,
    view: oneOf('timeSeries', 'singleValue', 'gauge', 'bar', 'pie', 'table'),
    yAxis: (value) => isObjectOf({ left: isAxis, right: isAxis })(value),
  },
};

const RENDERING = {
  id: (value: unknown) => isText(value) && /^[a-z]\w*$/.test(value),
  label: isText,
  stat: oneOf('Average', 'Maximum', 'Sum'),
  visible: oneOf(true, false),
  yAxis: oneOf('left', 'right'),
};

/** Returns true for `[namespace, name, dimension, value, {rendering}]` and for `[{expression}]`. */
function isMetric(metric: unknown): boolean {
  if (!Array.isArray(metric)) {
    return false;
  }
  const rendering: unknown = typeof metric.at(-1) === 'object' ? metric.at(-1) : {};
  const names = metric.filter((part) => part !== rendering);
  if (names.length === 0) {
    return isObjectOf({ ...RENDERING, expression: (value) => isText(value) && value.length <= 2_048 })(
      rendering,
    );
  }
  return (
    names.every(isText) && names.length >= 2 && names.length % 2 === 0 && isObjectOf(RENDERING)(rendering)
  );
}

function isAxis(value: unknown): boolean {
  return isObjectOf({ min: isNumber, max: isNumber, label: isText })(value);
}

function isObjectOf(members: Record<string, (value: unknown) => boolean>): (value: unknown) => boolean {
  return (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(([name, member]) => members[name]?.(member) === true);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function oneOf(...values: unknown[]): (value: unknown) => boolean {
  return (value) => values.includes(value);
}

function listOf(is: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.every(is);
}

function within(value: unknown, least: number, most: number): boolean {
  return Array.isArray(value) && value.length >= least && value.length <= most;
}

interface Widget {
  readonly type: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly properties: Record<string, unknown>;
}

/**
 * Returns the widgets of the stack's dashboard as CloudWatch receives them, with a string in place of each reference.
 */
function widgets(stack: Stack): Widget[] {
  const [dashboard] = resources(stack, 'AWS::CloudWatch::Dashboard');
  const body = dashboard?.Properties.DashboardBody as { 'Fn::Join': [string, unknown[]] };
  const parts = body['Fn::Join'][1].map((part) => (typeof part === 'string' ? part : 'REFERENCE'));
  const { widgets: all, ...others } = JSON.parse(parts.join('')) as { widgets: Widget[] };
  expect(others).toEqual({});
  expect(all.length).toBeLessThanOrEqual(500);
  return all;
}

function monitored(props: AsyncRetriesProps = {}): Widget[] {
  const { stack, retries } = withOne(props);
  retries.monitor({ dashboard: true });
  retries.attach(newFunction(stack, 'Billing'));
  return widgets(stack);
}

test("the dashboard's body matches CloudWatch's documentation", () => {
  for (const widget of monitored()) {
    const members = WIDGETS[widget.type];
    expect(members, widget.type).toBeDefined();
    for (const [name, value] of Object.entries(widget.properties)) {
      expect(members?.[name]?.(value), `${name} of ${widget.type}: ${JSON.stringify(value)}`).toBe(true);
    }
    const { x, y, width, height } = widget;
    expect([x, y, width, height].every((figure) => Number.isInteger(figure) && figure >= 0)).toBe(true);
    expect(x + width).toBeLessThanOrEqual(24);
    expect(height).toBeGreaterThan(0);
    expect(width).toBeGreaterThan(0);
  }
});

test('no widget overlaps another', () => {
  const taken = new Set<string>();
  for (const { x, y, width, height } of monitored()) {
    for (let column = x; column < x + width; column += 1) {
      for (let row = y; row < y + height; row += 1) {
        const cell = `${String(column)}, ${String(row)}`;
        expect(taken).not.toContain(cell);
        taken.add(cell);
      }
    }
  }
});

test('ids are unique, and expressions use only them', () => {
  for (const { type, properties } of monitored()) {
    const metrics = type === 'metric' ? (properties.metrics as unknown[][]) : [];
    const renderings = metrics.map((metric) => metric.at(-1) as { id?: string; expression?: string });
    const ids = renderings.flatMap(({ id }) => id ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { expression = '' } of renderings.filter(
      ({ expression }) => !expression?.includes('SEARCH'),
    )) {
      const names = expression.match(/\b[a-z]\w*/g) ?? [];
      expect(ids).toEqual(expect.arrayContaining(names));
    }
  }
});

test('it shows all alarms, including later ones', () => {
  const alarms = monitored().filter(({ type }) => type === 'alarm');
  expect(alarms).toHaveLength(1);
  expect(alarms[0]?.properties.alarms).toHaveLength(9 + 2);
});

test.each<[AsyncRetriesProps, string]>([
  [{}, '100 * hidden / (2 * 50000)'],
  [{ hideUpTo: 200 }, '100 * hidden / (2 * 200)'],
  [{ alwaysHide: true }, '100 * hidden / 120000'],
])('the room for hidden messages, with %j', (props, expression) => {
  expect(JSON.stringify(monitored(props))).toContain(expression);
});
