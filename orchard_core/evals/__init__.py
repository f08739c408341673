"""What runs say: statistics, reports and comparisons."""
